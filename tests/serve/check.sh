#!/usr/bin/env bash
# check.sh TBD_SIM OPTION...: load.py, where the page that is served has its charts' library.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -s $here/../../simulate/report/html/assets/plotly.min.js.gz ]] || exit 77
exec python3 "$here/load.py" "$@"
