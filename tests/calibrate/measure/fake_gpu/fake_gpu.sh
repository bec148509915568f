#!/bin/sh
# Whole runs of tbd-measure on a GPU that computes nothing (fake_gpu.h): what must hold on any GPU.
measure=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "FAILED: $1"; tail -5 out error 2>/dev/null; exit 1; }
go() { "$measure" "$@" > out 2> error; }
# Columns of a record: op is 4, algorithm 43 (1 to 43 name a row but for its workspace, 52), time_s 44, timer 48.
names() { tail -n +2 "$1" | cut -d, -f1-43 | sort; }

# Everything once: all ops but all_reduce, which this build refuses by name.
go -o all.csv || fail 'the whole built-in plan'
grep -q 'skipped all_reduce fp32 .*: built without NCCL' error || fail 'all_reduce is skipped by name'
for op in gemm batched_gemm conv batch_norm max_pool avg_pool softmax lstm gru add relu bias dropout layer_norm \
  sgd_momentum adam launch l2_flush copy_h2d copy_d2h copy_d2d; do
  cut -d, -f4 all.csv | grep -qx $op || fail "no row of $op"
done
# Convolutions: in fp32 the two algorithms without tensor cores; in tf32 also the one with them, which asks for 90 MB
# under the large limits and for 1000 bytes under that of 64 MB.
kinds() { awk -F, -v p="$1" '$3 == p && $4 == "conv" && $5 == "forward" {print $43 "/" $52}' all.csv | sort -u | tr '\n' ' '; }
[ "$(kinds fp32)" = 'IMPLICIT_GEMM/ IMPLICIT_PRECOMP_GEMM/100000000 ' ] || fail "algorithms in fp32: $(kinds fp32)"
[ "$(kinds tf32)" = 'IMPLICIT_GEMM/ IMPLICIT_PRECOMP_GEMM+tensor/1000 IMPLICIT_PRECOMP_GEMM+tensor/90000000 IMPLICIT_PRECOMP_GEMM/100000000 ' ] ||
  fail "algorithms in tf32: $(kinds tf32)"
# A call is 20 us and 1 us of kernels and a gap of 0.5 us, each up to 1 % longer: the gap only counts between events.
awk -F, 'NR > 1 && $4 == "gemm" && ($44 < 2.1e-5 || $44 > 2.13e-5 || $47 <= $44 || $48 != "cupti")' all.csv | grep -q . &&
  fail 'a GEMM that does not take 21 us'

# The same command finds everything done.
rows=$(wc -l < all.csv)
go -o all.csv || fail 'the second run'
grep -q '^0 points measured' out || fail 'nothing is measured twice'
[ "$(wc -l < all.csv)" = "$rows" ] || fail 'the second run added rows'

# Ended by a signal, continued, and cut off in the middle of a row: in the end the same rows as in one go.
go -o add.csv --only add --only relu --only gemm --precision fp32 || fail 'a part of the plan'
FAKE_GPU_CALL_US=1000 "$measure" -o cut.csv --only add --only relu --only gemm --precision fp32 > out 2> error &
run=$!
sleep 1
kill -TERM $run
wait $run
[ $? -eq 143 ] || fail 'exit code after SIGTERM'
grep -q ' [1-9][0-9]* not reached' out || fail 'what was not reached'
[ "$(wc -l < cut.csv)" -gt 1 ] || fail 'nothing measured before SIGTERM'
head -c -7 cut.csv > cut2.csv
go -o cut2.csv --only add --only relu --only gemm --precision fp32 || fail 'continuing'
grep -q 'unfinished' error || fail 'the unfinished line is not mentioned'
[ "$(names cut2.csv)" = "$(names add.csv)" ] || fail 'a continued run differs from one in one go'

# A limit of time, a full disk, too little memory, a refused function, a refused or forgetful CUPTI, a dead device.
FAKE_GPU_CALL_US=1000 go -o time.csv --minutes 0.05 || fail 'a limit of time'
grep -q ' [1-9][0-9]* out of time' out || fail 'what is out of time'
(ulimit -f 8; trap '' XFSZ; "$measure" -o disk.csv --only add --only relu > out 2> error)
[ $? -eq 2 ] || fail 'exit code of a full disk'
grep -q 'disk.csv: cannot be written: File too large; .* rows before are safe' error || fail 'message of a full disk'
go -o disk.csv --only add --only relu || fail 'continuing after a full disk'
FAKE_GPU_MEMORY=1e9 go -o memory.csv --only adam || fail 'a small GPU'
grep -q 'skipped adam update fp32 cold elements=67108864: needs 0.27 GB of device memory at once, 0.1' error ||
  fail 'too little memory is said by name'
FAKE_GPU_REFUSES=cudnnRNNForward go -o rnn.csv --only lstm --only add || fail 'a function that is refused'
grep -q 'skipped lstm forward fp32 .*cudnnRNNForward: CUDNN_STATUS_NOT_SUPPORTED' error || fail 'refusal by name'
cut -d, -f4 rnn.csv | grep -q add || fail 'the rest goes on'
FAKE_GPU_CUPTI=refuse go -o event.csv --only add || fail 'without CUPTI'
grep -q 'CUPTI is not used, times hold launch gaps: a fake refusal' error || fail 'CUPTI refused is said'
cut -d, -f48 event.csv | grep -q cupti && fail 'CUPTI times without CUPTI'
FAKE_GPU_CUPTI=lose go -o lose.csv --only add || fail 'lost records'
cut -d, -f48 lose.csv | grep -q cupti && fail 'times of lost records'
FAKE_GPU_DIES_AFTER=300 go -o dead.csv
[ $? -eq 1 ] || fail 'exit code of a dead device'
grep -q 'the records so far are safe' error || fail 'message of a dead device'
"$measure" -o dead.csv --only add > out 2> error || fail 'continuing after a dead device'
echo 'all runs hold'
