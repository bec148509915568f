#!/bin/sh
# What tbd-measure answers without asking a GPU for anything.
measure=$1
fail() { echo "FAILED: $1"; exit 1; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

"$measure" --help | grep -q 'usage: tbd-measure' || fail help
"$measure" --list-ops | grep -q batched_gemm || fail list-ops
"$measure" --dry-run --minutes 8 | tail -1 | grep -q 'points, .* in time' || fail dry-run
"$measure" --write-plan --only add > "$folder/plan.csv" || fail write-plan
"$measure" --dry-run --plan "$folder/plan.csv" | tail -1 | grep -q '15 points' || fail 'plan of add'

"$measure" --dry-run --plan "$folder/absent.csv" 2> "$folder/error"
[ $? -eq 2 ] || fail 'exit code of an absent plan'
grep -q 'absent.csv: cannot be read' "$folder/error" || fail 'message of an absent plan'
"$measure" 2> "$folder/error"
[ $? -eq 2 ] || fail 'exit code without -o'
if [ -w /dev/full ]; then
  "$measure" --list-ops > /dev/full 2> "$folder/error"
  [ $? -eq 2 ] || fail 'exit code of a full disk'
fi

# Without a device nothing is created and 77 is returned; CUDA_VISIBLE_DEVICES hides any that is there.
CUDA_VISIBLE_DEVICES='' "$measure" -o "$folder/r.csv" 2> "$folder/error"
[ $? -eq 77 ] || fail 'exit code without a device'
grep -q 'no CUDA device' "$folder/error" || fail 'message without a device'
[ ! -e "$folder/r.csv" ] || fail 'a file without a device'
echo ok
