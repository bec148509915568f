#!/usr/bin/env bash
# check_pictures.sh TBD_SIM: docs/chart_pictures.sh makes a picture of each chart of a report.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -s $here/../../simulate/report/html/assets/plotly.min.js.gz ]] && command -v chromium >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" report --gpu titanxp --model alexnet --framework mxnet -o "$work/page.html"
charts=$(grep -c '<figure class="chart' "$work/page.html")
[[ $charts -gt 5 ]]
for format in svg png; do
  "$here/../../docs/chart_pictures.sh" "$work/page.html" "$format" "$work/$format"
  [[ $(ls "$work/$format" | wc -l) == "$charts" ]] || { echo "not $charts pictures as $format" >&2; exit 1; }
done
[[ -s $(ls "$work"/svg/*_throughput_alexnet.svg) ]]
for picture in "$work"/svg/*.svg; do
  python3 -c 'import sys, xml.dom.minidom as x; assert x.parse(sys.argv[1]).documentElement.tagName == "svg"' "$picture"
done
for picture in "$work"/png/*.png; do [[ $(head -c 4 "$picture" | tail -c 3) == PNG ]]; done
