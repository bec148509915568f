#!/usr/bin/env bash
# From a fresh Debian 12 to an answer:
#
#   ./quickstart.sh --gpu titanxp --batch 64    install what is missing, build, run tbd-sim with these arguments
#   ./quickstart.sh test                        the same set-up, then the whole test suite (arguments go to ctest)
#   ./quickstart.sh setup                       the packages that building and testing need, nothing else
#
# Packages are listed in packages.txt. Progress goes to stderr; stdout is the program's alone.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build="$root/build/release"

packages() {  # packages SECTION: its names in packages.txt
  awk -v section="[$1]" '/^\[/ {on = $0 == section; next} on && !/^#/ && NF {print $1}' "$root/packages.txt"
}

install_missing() {  # install_missing PACKAGE...
  local installed missing=() as_root=()
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -q "^$package installed$" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "quickstart: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 2; }
    as_root=(sudo)
  fi
  echo "quickstart: installing ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

# HTML reports alone need it; without a network everything else works.
plotly() { "$root/simulate/report/html/assets/get_plotly.sh" || echo "quickstart: no Plotly, so no HTML reports" >&2; }

configure() { (cd "$root" && cmake --preset release) >&2; }

if [[ ${1:-} == test || ${1:-} == setup ]]; then
  mapfile -t needed < <(packages build; packages test)
  install_missing "${needed[@]}"
  plotly
  [[ $1 == test ]] || exit 0
  configure
  cmake --build "$build" --target all all_verify_interface_header_sets >&2
  cd "$root" && exec ctest --preset release "${@:2}"
fi

mapfile -t needed < <(packages build)
install_missing "${needed[@]}"
plotly
[[ -f $build/build.ninja ]] || configure  # once configured, ninja alone decides what is out of date
cmake --build "$build" --target tbd-sim >&2
# Where CUDA was found tbd-measure is built as well; the answer does not wait for it to succeed.
if grep -q '^build tbd-measure:' "$build/build.ninja"; then
  cmake --build "$build" --target tbd-measure >&2 || echo "quickstart: tbd-measure could not be built" >&2
fi
exec "$build/simulate/tbd-sim" "$@"
