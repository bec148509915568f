#!/usr/bin/env bash
# check_live.sh TBD_SIM: live_check.py with Debian's own Python, which has Debian's packages.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -s $here/../../simulate/report/html/assets/plotly.min.js.gz ]] || exit 77
python=python3
[[ -x /usr/bin/python3 ]] && python=/usr/bin/python3
exec "$python" "$here/live_check.py" "$1"
