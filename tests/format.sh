#!/usr/bin/env bash
# Fails, naming the places, where a C++ file is not as clang-format would have it. `tests/format.sh --fix` formats all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(git ls-files '*.h' '*.cpp')
if [[ ${1-} == --fix ]]; then
  exec clang-format -i "${files[@]}"
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 40 -P "$(nproc)" clang-format --dry-run -Werror
