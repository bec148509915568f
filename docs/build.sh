#!/usr/bin/env bash
# Makes build/site of these pages. The generator (docs/site/requirements.txt) comes from PyPI into build/site_venv; exit
# code 77 where it cannot be had. Warnings (a link that leads nowhere, a page that is in no menu) are errors.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/build/site_venv"
needed="$root/docs/site/requirements.txt"
if ! cmp -s "$needed" "$venv/installed.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv" || { echo "docs/build.sh: no venv (Debian: python3-venv)" >&2; exit 77; }
  "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 -r "$needed" || { rm -rf "$venv"; exit 77; }
  cp "$needed" "$venv/installed.txt"
fi
NO_MKDOCS_2_WARNING=true exec "$venv/bin/mkdocs" build -q -f "$root/docs/site/mkdocs.yml"
