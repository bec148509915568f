#!/usr/bin/env bash
# check.sh COMMAND...: runs the command with "-o PAGE.html" and page_check.py on what it wrote.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -s $here/../../simulate/web/plotly.min.js.gz ]] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$@" -o "$work/page.html"
python=python3  # Debian's own has the packages of Debian
[[ -x /usr/bin/python3 ]] && python=/usr/bin/python3
"$python" "$here/page_check.py" "$work/page.html"
