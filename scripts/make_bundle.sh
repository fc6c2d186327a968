#!/usr/bin/env bash
# Builds the GPU check as one archive for machines that have neither compilers nor our libraries.
set -euo pipefail
caller=$PWD
unset CDPATH
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/make_bundle.sh [--out FILE] [--build DIR]

Builds gyre and its CUDA tests, and packs them with the libraries that they need, configurations, 12,000 images and gpu_check.sh.
The archive runs on x86-64 Linux with the glibc of Debian 12 or newer; a GPU needs NVIDIA's driver and CUDA 13's cuBLAS.

  --out FILE   archive to write (default: build/gyre-gpu-check.tar.gz)
  --build DIR  pack this build, configured with GYRE_PORTABLE=ON, as it is (default: build/portable, brought up to date)

GYRE_CMAKE_FLAGS: more arguments for the configure step.
TEXT
}
wrong_use() { echo "make_bundle.sh: $1 (see make_bundle.sh --help)" >&2; exit 2; }
fail() { echo "make_bundle.sh: $1" >&2; exit 1; }

out=build/gyre-gpu-check.tar.gz build=''
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --out | --build)
      [ $# -ge 2 ] && [ -n "$2" ] || wrong_use "$1 needs a value"
      case "$2" in /*) path=$2 ;; *) path=$caller/$2 ;; esac
      declare "${1#--}=$path"; shift 2 ;;
    *) wrong_use "unknown option '$1'" ;;
  esac
done
[[ "$out" == *.tar.gz ]] || wrong_use "--out: $out is no .tar.gz"
[ -z "$build" ] || [ -e "$build/CMakeCache.txt" ] || wrong_use "--build: $build is no build"
most=40000000 newest_glibc=2.36 # bytes packed; of Debian 12
programs=(gyre tests/test_cuda tests/test_cuda_models tests/test_cuda_train tests/simt/test_simt tests/simt/gpu/test_simt_gpu)

scripts/packages.sh build test data
if [ -z "$build" ]; then
  build=build/portable
  # shellcheck disable=SC2086
  cmake --preset portable -DGYRE_CUDA=ON ${GYRE_CMAKE_FLAGS:-} > /dev/null
  cmake --build --preset portable | tail -n 1
fi
grep -q '^GYRE_PORTABLE:BOOL=ON' "$build/CMakeCache.txt" 2> /dev/null || fail "$build is no build with GYRE_PORTABLE=ON"
build=$(realpath "$build")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=$(basename "$out" .tar.gz)
bundle=$work/$name
mkdir -p "$bundle"/{bin,lib,licenses,configs}

# The text that goes with a library of Debian's or of the CUDA toolkit.
licence_of() {
  local path package
  for path in "$1" "$(readlink -f "$1")" "/usr$1" "/usr$(readlink -f "$1")"; do
    package=$(dpkg -S "$path" 2> /dev/null | cut -d: -f1 | head -n 1) || continue
    [ ! -e "/usr/share/doc/$package/copyright" ] || { echo "/usr/share/doc/$package/copyright"; return; }
  done
  for path in "$(dirname "$(readlink -f "$1")")"/{..,../..,../../..}/{EULA.txt,dist-info/nvidia_cuda_runtime-*/licenses/License.txt}; do
    [ ! -e "$path" ] || { echo "$path"; return; }
  done
  fail "no licence goes with $1"
}
# Whether a library comes with glibc.
of_glibc() { [[ "$1" =~ ^(lib(c|m|pthread|dl|rt|util|resolv)|ld-linux-x86-64)\.so\.[0-9]+$ ]]; }
for program in "${programs[@]}"; do
  [ -x "$build/$program" ] || fail "$build has no $program"
  strip -o "$bundle/bin/$(basename "$program")" "$build/$program"
  readelf -d "$build/$program" | grep -q 'RPATH.*\[$ORIGIN/../lib\]' || fail "$program does not look for libraries in ../lib"
  ! readelf -d "$build/$program" | grep -E 'NEEDED.*lib(cuda\.|cublas|cudnn|nccl)' || fail "$program does not start without CUDA"
  LD_LIBRARY_PATH=$build ldd "$build/$program" > "$work/ldd"
  ! grep 'not found' "$work/ldd" || fail "$program lacks libraries"
  while read -r library _ path _; do
    of_glibc "$library" || [ -e "$bundle/lib/$library" ] || {
      strip --strip-unneeded -o "$bundle/lib/$library" "$path"
      case "$library" in libgyre_*) ;; *) cp "$(licence_of "$path")" "$bundle/licenses/$library" ;; esac
    }
  done < <(grep '=> /' "$work/ldd")
done

# Nothing outside may be needed, and nothing newer than Debian 12.
for file in "$bundle"/bin/* "$bundle"/lib/*; do
  while read -r library; do
    of_glibc "$library" || [ -e "$bundle/lib/$library" ] || fail "$(basename "$file") needs $library, which the bundle lacks"
  done < <(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  glibc=$(readelf -V "$file" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  [ "$(printf '%s\n' "$glibc" "$newest_glibc" | sort -V | tail -n 1)" = "$newest_glibc" ] ||
    fail "$(basename "$file") needs glibc $glibc"
done

cp LICENSE "$bundle/licenses/gyre"
cp scripts/gpu_check.sh scripts/gpu_check_stages.sh "$bundle"
cp -r configs/fashion_mnist "$bundle/configs"
scripts/cut_fashion_mnist.sh 10000 2000 "$bundle/data/fashion_mnist"
cp /usr/share/doc/dataset-fashion-mnist/copyright "$bundle/licenses/dataset-fashion-mnist"
commit=$(git rev-parse HEAD)
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit+=" with changes"
{
  "$bundle/bin/gyre" --version
  echo "commit $commit"
  echo "CUDA $(grep -oE 'code=\[[a-z0-9_]+\]' "$build/build.ninja" | sort -u | tr -d '[]' | sed 's/code=//' | paste -sd ' ')"
} > "$bundle/VERSION"
cat > "$bundle/README.txt" <<'TEXT'
The GPU check of gyre. On a Linux machine (x86-64, glibc 2.36 or newer) with an NVIDIA GPU (compute capability 8.0 or newer), its
driver, and the cuBLAS of CUDA 13 from a toolkit or from pip's wheel nvidia-cublas:

    ./gpu_check.sh

takes under four minutes, prints a table, and leaves gpu_check/gpu_check.json and a log of each stage. Its exit code is 0 if all is
right, 1 if something is wrong, and 3 if there is no GPU. ./gpu_check.sh --device cpu runs the same stages, smaller, on the CPU;
./gpu_check.sh --help tells the options. cuBLAS in an unusual place: --cuda-libs DIR.

bin/gyre is the whole program: bin/gyre --help. This build reads JPEG and PNG pictures only.
TEXT

mkdir -p "$(dirname "$out")"
tar -C "$work" --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n > "$out.part"
bytes=$(wc -c < "$out.part")
[ "$bytes" -le "$most" ] || { rm "$out.part"; fail "the archive has $bytes bytes, more than $most"; }
mv "$out.part" "$out"
printf '%s: %s bytes packed, %s unpacked\n' "$out" "$bytes" "$(du -sb "$bundle" | cut -f1)"
