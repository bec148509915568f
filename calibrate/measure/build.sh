#!/bin/sh
# Builds tbd-measure with nvcc and a C++20 compiler, without CMake: for machines with an old GPU and little else.
#
# usage: [VARIABLE=...] calibrate/measure/build.sh [OUTPUT]      (default output: ./tbd-measure)
#   NVCC        the compiler (default: nvcc on PATH, else /usr/local/cuda/bin/nvcc)
#   CUDNN_ROOT  folder with cuDNN's include and lib, where it is not in the toolkit
#   CXX         host compiler, g++ 10 or newer (default g++); nvcc uses it too
#   ARCH        compute capability without a dot, such as 61; default: every one this nvcc knows
#   JOBS        compilers at once (default 2)
# CUDA 11 or 12 with cuDNN 8 or 9 build it for Maxwell, Pascal and Volta; CUDA 13 starts at Turing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
output=${1-tbd-measure}
nvcc=${NVCC-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
cxx=${CXX-g++}
command -v "$nvcc" > /dev/null || { echo "build.sh: no nvcc; set NVCC=/path/to/nvcc" >&2; exit 2; }
command -v "$cxx" > /dev/null || { echo "build.sh: no $cxx; set CXX to a C++20 compiler" >&2; exit 2; }
toolkit=$("$nvcc" --dryrun -x cu -c /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
cudnn=${CUDNN_ROOT-$toolkit}
# cuDNN and NCCL often come with PyTorch, in the wheels below Python's package nvidia.
wheels=$(python3 -c 'import glob, nvidia; print(*(f for p in nvidia.__path__ for f in sorted(glob.glob(p + "/*/"))))' \
  2> /dev/null | sed 's:/ : :g; s:/$::') || wheels=''
below() { for folder in $wheels; do printf '%s/%s ' "$folder" "$1"; done; }

# Folders that exist, as options: first argument the option, the others candidates.
options() {
  option=$1
  shift
  for folder in "$@"; do
    [ -d "$folder" ] && printf '%s%s ' "$option" "$folder"
  done
  return 0
}
includes=$(options '-isystem' "$cudnn/include" "$toolkit/include" "$toolkit/targets/x86_64-linux/include" \
  "$toolkit/extras/CUPTI/include" $(below include) | sed 's/-isystem/-isystem /g')
set -- "$cudnn/lib" "$cudnn/lib64" "$toolkit/lib64" "$toolkit/lib" "$toolkit/targets/x86_64-linux/lib" \
  "$toolkit/extras/CUPTI/lib64" $(below lib)
libraries=$(options -L "$@")
rpaths=$(options -Wl,-rpath, "$@")

# The library to link: by its name without a version, or by the versioned one where a wheel has nothing else.
library() {
  name=$1
  shift
  for folder in "$@"; do
    [ -e "$folder/lib$name.so" ] && { echo "-l$name"; return; }
    for file in "$folder/lib$name.so."*; do
      [ -e "$file" ] && { echo "-l:$(basename "$file")"; return; }
    done
  done
  return 1
}
need() { library "$@" || { echo "build.sh: lib$1 was not found; set CUDNN_ROOT or install it" >&2; exit 2; }; }
link="$(need cublas "$@") $(need cublasLt "$@") $(need cudnn "$@") $(need cupti "$@")"
version=$(sed -n 's/^project(tbd-sim VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
defines="-DTBDSIM_VERSION='\"$version\"'"  # goes through a shell below
if nccl=$(library nccl "$@") && [ -n "$(find $(options '' "$cudnn/include" "$toolkit/include" $(below include)) -maxdepth 1 -name nccl.h)" ]; then
  defines="$defines -DTBDSIM_HAVE_NCCL"
  link="$link $nccl"
fi

codes=$("$nvcc" --list-gpu-code | tr '\n' ' ')
architectures=''
for number in ${ARCH-52 60 61 70 75 80 86 89 90}; do
  case " $codes " in
    *" sm_$number "*) architectures="$architectures -gencode arch=compute_$number,code=sm_$number"; last=$number ;;
  esac
done
[ -n "$architectures" ] || { echo "build.sh: this nvcc compiles for none of: ${ARCH-}; it knows $codes" >&2; exit 2; }
architectures="$architectures -gencode arch=compute_$last,code=compute_$last"

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
cd "$root"
sources="hwspecs/base/csv.cpp hwspecs/base/error.cpp hwspecs/base/file.cpp hwspecs/base/suggest.cpp
  hwspecs/base/utf8.cpp"
{
  for source in $sources calibrate/records/*.cpp calibrate/measure/*/*.cpp; do
    echo "$cxx -std=c++20 -O2 $defines -I . $includes -c $source -o $objects/$(basename "$source").o"
  done
  for source in calibrate/measure/kernels/*.cu; do
    echo "$nvcc -ccbin $cxx -std=c++17 -O3 $architectures -I . -c $source -o $objects/$(basename "$source").o"
  done
} > "$objects/commands"
echo "build.sh: $(wc -l < "$objects/commands") files, $nvcc, $architectures"
tr '\n' '\0' < "$objects/commands" | xargs -0 -n 1 -P "${JOBS-2}" sh -ec
cd - > /dev/null
"$nvcc" -ccbin "$cxx" "$objects"/*.o -o "$output" $libraries $(echo "$rpaths" | sed 's/-Wl,/-Xlinker /g; s/-rpath,/-rpath -Xlinker /g') $link -ldl
echo "build.sh: $output is ready"
