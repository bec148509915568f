#!/usr/bin/env bash
# python_package.sh SOURCE WORK: installs the Python package as a user does (`pip install .`) into a virtual environment in WORK
# and runs its tests; those of capturing need torch and are skipped without it. Where PyPI cannot be reached: 77.
set -euo pipefail
source=$1 work=$2
mkdir -p "$work"
[[ -x $work/venv/bin/pip ]] || python3 -m venv "$work/venv"
if ! "$work/venv/bin/pip" install -q nanobind scikit-build-core pytest pandas; then
  echo "PyPI cannot be reached: the Python package is not tested"
  exit 77
fi
# The release build's compiler and flags, in a folder as deep as build/release: the compiler's cache then has every object.
CXX=c++ "$work/venv/bin/pip" install -q --no-build-isolation --config-settings=build-dir="$source/build/python" \
  --config-settings=cmake.define.TBDSIM_WERROR=ON "$source"
cd "$work"  # the installed package, not the folder of its sources
"$work/venv/bin/python" -m pytest -q "$source/python/tests"
