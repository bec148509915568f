#!/bin/sh
# Compiles tbd-measure's host sources, syntax only, against the headers of CUDA 11 and 12 with cuDNN 8: owners of Maxwell,
# Pascal and Volta cards build with those. The headers come from NVIDIA's packages on the Python package index, by pip.
# They are large (1.2 GB and 1.6 GB, of which the headers are 20 MB), so headers are kept and packages thrown away.
#
# usage: check_older_headers.sh [--offline] [FOLDER]
#   FOLDER     where headers are kept; default $TBDSIM_OLDER_HEADERS, else ~/.cache/tbd-sim/older-headers
#   --offline  download nothing
# exit code: 0 both compile, 1 one does not, 77 no headers could be had
set -u
offline=no
if [ "${1-}" = --offline ]; then offline=yes; shift; fi
folder=${1-${TBDSIM_OLDER_HEADERS-$HOME/.cache/tbd-sim/older-headers}}
root=$(cd "$(dirname "$0")/../.." && pwd)
compiler=${CXX-g++}
checked=0
failed=0

# fetch GENERATION PACKAGE...: unpacks the headers of the packages into $folder/GENERATION/include.
fetch() {
  generation=$1
  shift
  packages=$(mktemp -d) || return 1
  echo "$generation: downloading $*"
  for package in "$@"; do
    # The newest version whose wheel this Python can unpack; any platform tag does, only headers are taken.
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$packages" "$package" || {
      rm -rf "$packages"
      return 1
    }
  done
  mkdir -p "$folder/$generation.part/include"
  python3 - "$packages" "$folder/$generation.part/include" << 'END' || return 1
import pathlib, sys, zipfile
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            head, found, rest = name.partition("/include/")
            if found and rest and not name.endswith("/"):
                target = pathlib.Path(sys.argv[2]) / rest
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
END
  rm -rf "$packages"
  mv "$folder/$generation.part" "$folder/$generation"
}

# compile GENERATION: every host source that includes a CUDA header.
compile() {
  generation=$1
  sources=0
  for source in $(grep -lE '#include <(cu|nccl)|measure/(device/(session|device|dnn|cuda_check|activity|nvml)|ops/(ops|conv_algorithms|timing)|run/(campaign|self_test))\.h' \
    "$root"/calibrate/measure/*/*.cpp); do
    "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -DTBDSIM_HAVE_NCCL '-DTBDSIM_VERSION="check"' -I "$root" \
      -isystem "$folder/$generation/include" "$source" || failed=$((failed + 1))
    sources=$((sources + 1))
  done
  checked=$((checked + 1))
  version=$(sed -n 's/^#define CUDART_VERSION *\([0-9]*\).*/\1/p' "$folder/$generation/include/cuda_runtime_api.h")
  dnn=$(sed -n 's/^#define CUDNN_MAJOR *\([0-9]*\).*/\1/p' "$folder/$generation/include/cudnn_version.h")
  echo "$generation: $sources sources against CUDA $version, cuDNN $dnn; $failed failures so far"
  [ $sources -ge 15 ] || { echo "too few sources: has a folder moved?"; exit 1; }
}

check() {
  generation=$1
  if [ ! -d "$folder/$generation" ]; then
    if [ $offline = yes ]; then
      echo "$generation: no headers in $folder; run this script without --offline once"
      return
    fi
    mkdir -p "$folder" && rm -rf "$folder/$generation.part" && fetch "$@" || {
      echo "$generation: the packages cannot be had; skipped"
      return
    }
  fi
  compile "$generation"
}

check cu11 nvidia-cuda-runtime-cu11 nvidia-cuda-nvcc-cu11 \
  nvidia-cublas-cu11 'nvidia-cudnn-cu11<9' nvidia-cuda-cupti-cu11 nvidia-nccl-cu11
check cu12 nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12 \
  nvidia-cublas-cu12 'nvidia-cudnn-cu12<9' nvidia-cuda-cupti-cu12 nvidia-nccl-cu12 \
  nvidia-cuda-cccl-cu12

[ $checked -gt 0 ] || exit 77
[ $failed -eq 0 ]
