#!/usr/bin/env bash
# Fuzzes every reader for a long time, two at once; what is found stays in build/asan/tests/fuzz.
#
# usage: tests/fuzz/long.sh [SECONDS]      (default: 600 for each of nineteen readers, ninety-five minutes on two cores)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset asan -DTBDSIM_FUZZ_SECONDS="${1:-600}"
cmake --build --preset asan
ctest --preset asan -L fuzz
cmake --preset asan -DTBDSIM_FUZZ_SECONDS=5 >/dev/null
