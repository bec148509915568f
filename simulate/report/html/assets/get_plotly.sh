#!/usr/bin/env bash
# Plotly's JavaScript, which draws the charts of HTML reports, from PyPI's package plotly, beside this file. The version
# and its checksum are in plotly.txt; pip refuses anything else.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target="$folder/plotly.min.js.gz"
[[ -s $target && $target -nt $folder/plotly.txt ]] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download -q --disable-pip-version-check --retries 1 --timeout 10 --no-deps --require-hashes -r "$folder/plotly.txt" -d "$work" >&2
python3 - "$work" "$work/plotly.min.js.gz" <<'PYTHON'
import glob, gzip, sys, zipfile
with zipfile.ZipFile(glob.glob(sys.argv[1] + "/plotly-*.whl")[0]) as wheel:
    script = wheel.read("plotly/package_data/plotly.min.js")
with open(sys.argv[2], "wb") as out:
    out.write(gzip.compress(script, 9, mtime=0))
PYTHON
mv "$work/plotly.min.js.gz" "$target"
