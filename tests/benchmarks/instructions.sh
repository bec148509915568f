#!/usr/bin/env bash
# Instructions of a prediction of ResNet-50, and of the command without a name, counted by callgrind: the same figure on a
# fast machine and a busy one. instructions.sh [TBD_SIM]: prints and, beyond the limits below, fails. Where there is no
# valgrind: 77. The limits of a prediction are about 1.3 times what the fastest form needed (425,000 and 257,000): a plainer
# form may cost 18,000 predictions a second for 22,000, and trying every split of a GEMM and the limits of the data sheet
# cost 4 % of the first, groups, dilation and aligned rows another 4 %, how threads reach the numbers of kernels that move
# bytes 1 %. The command, which reads eight models and a profile and predicts 23 times, needs 405 M and took 64 ms on two quiet cores at 511 M (asked: 50).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-build/release/simulate/tbd-sim}
command -v valgrind >/dev/null || { echo "no valgrind"; exit 77; }

# On one thread: each further one reads and predicts a first point of its own.
processor=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
count_of() { # of the program with these arguments
  taskset -c "$processor" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1 >/dev/null | awk '/Collected/ {print $NF}'
}
count() { # of a sweep with these axes
  count_of sweep --model resnet50 --framework mxnet \
    --metrics throughput,iteration_time,gpu_utilization,fp32_utilization,memory_total "$@"
}
whole() { # LIMIT ARGUMENTS
  local limit=$1 instructions
  instructions=$(count_of "${@:2}")
  echo "tbd-sim ${*:2}: $instructions instructions (limit $limit)"
  ((instructions <= limit))
}
each() { # NAME LIMIT POINTS: what a longer sweep has over a shorter one, for each further point
  local name=$1 limit=$2 points=$3 instructions=$((($5 - $4) / $3))
  echo "$name: $instructions instructions a prediction (limit $limit)"
  ((instructions <= limit))
}

whole 490000000 --gpu titanxp --batch 64
each "batch and GPU change" 580000 200 "$(count --gpu titanxp,t4 --batch 1:50)" "$(count --gpu titanxp,t4 --batch 1:150)"
each "rates change" 314000 200 \
  "$(count --gpu titanxp --batch 32 --set gpu.memory_bandwidth=300GB/s:399GB/s:1GB/s)" \
  "$(count --gpu titanxp --batch 32 --set gpu.memory_bandwidth=300GB/s:599GB/s:1GB/s)"
