#!/usr/bin/env bash
# check_man_pages.sh TBD_SIM: docs/man_pages.sh makes a page of the program and of each command, with options and examples.
set -euo pipefail
command -v help2man >/dev/null || exit 77
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/../../docs/man_pages.sh" "$1" "$work"
for command in kernels report serve validate; do [[ -s $work/tbd-sim-$command.1 ]]; done
for page in "$work"/*.1; do
  grep -q '^\.TH '"$(basename "$page" .1 | tr a-z A-Z)"' ' "$page" && grep -q '^\.SH OPTIONS' "$page" && grep -q '^\.SH EXAMPLES' "$page" ||
    { echo "$(basename "$page") lacks its title, its options or its examples" >&2; exit 1; }
done
