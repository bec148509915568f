#!/usr/bin/env bash
# Instructions of a prediction of ResNet-50, counted by callgrind: the same figure on a fast machine and a busy one.
# instructions.sh [TBD_SIM]: prints and, beyond the limits below, fails. Where there is no valgrind: 77. The limits are
# 22 / 18 of what the fastest form needed: a plainer form may cost that, 18,000 predictions a second for 22,000.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-build/release/simulate/tbd-sim}
command -v valgrind >/dev/null || { echo "no valgrind"; exit 77; }

# On one thread: each further one reads and predicts a first point of its own.
processor=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
count() { # of a sweep with these axes
  taskset -c "$processor" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" sweep --model resnet50 --framework mxnet "$@" \
    2>&1 >/dev/null | awk '/Collected/ {print $NF}'
}
each() { # NAME LIMIT POINTS: what a longer sweep has over a shorter one, for each further point
  local name=$1 limit=$2 points=$3 instructions=$((($5 - $4) / $3))
  echo "$name: $instructions instructions a prediction (limit $limit)"
  ((instructions <= limit))
}

each "batch and GPU change" 519000 200 "$(count --gpu titanxp,t4 --batch 1:50)" "$(count --gpu titanxp,t4 --batch 1:150)"
each "rates change" 314000 200 \
  "$(count --gpu titanxp --batch 32 --set gpu.memory_bandwidth=300GB/s:399GB/s:1GB/s)" \
  "$(count --gpu titanxp --batch 32 --set gpu.memory_bandwidth=300GB/s:599GB/s:1GB/s)"
