#!/usr/bin/env bash
# chart_pictures.sh PAGE.html svg|png FOLDER: every chart of a page that `tbd-sim report` or `tbd-sim validate --html`
# wrote as a picture, FOLDER/<number>_<section>_<chart>.<svg|png>, drawn by a headless Chromium.
set -euo pipefail
[[ $# == 3 && ($2 == svg || $2 == png) ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
page=$(realpath "$1") format=$2 folder=$3
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "chart_pictures.sh: Chromium is not installed; expected it as chromium on the PATH" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$page" "$work/page.html"  # a name that a URL takes as it is
options=(--headless=new --disable-gpu --hide-scrollbars --window-size=1280,900 --virtual-time-budget=600000
         --user-data-dir="$work/profile" --dump-dom)
((EUID != 0)) || options+=(--no-sandbox)  # which Chromium refuses to root
timeout 180 "$browser" "${options[@]}" "file://$work/page.html#export-$format" >"$work/dom" 2>/dev/null
mkdir -p "$folder"
# page.js leaves one line a chart: its name and the picture in base64.
sed -n '/<pre id="exported">/,/<\/pre>/p' "$work/dom" | sed 's/.*<pre id="exported">//; s/<\/pre>.*//' >"$work/charts"
[[ -s $work/charts ]] || { echo "chart_pictures.sh: Chromium drew no charts of $page" >&2; exit 1; }
while read -r name picture; do
  base64 -d <<<"$picture" >"$folder/$name.$format"
done <"$work/charts"
