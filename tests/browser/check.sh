#!/usr/bin/env bash
# check.sh OPTION COMMAND...: runs the command with "OPTION PAGE.html" and page_check.py on what it wrote.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -s $here/../../simulate/report/html/assets/plotly.min.js.gz ]] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${@:2}" "$1" "$work/page.html"
python=python3
[[ -x /usr/bin/python3 ]] && python=/usr/bin/python3  # Debian's own has Debian's packages
"$python" "$here/page_check.py" "$work/page.html"
