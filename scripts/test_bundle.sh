#!/usr/bin/env bash
# Tries the bundle of make_bundle.sh as a bare machine would: test_bundle.sh [FILE [ROOT]]
# FILE: the archive (made if not given); ROOT: a root folder to enter by chroot, such as debootstrap makes:
#   debootstrap --variant=minbase trixie ROOT http://deb.debian.org/debian
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -le 2 ] || { echo "usage: test_bundle.sh [FILE [ROOT]]" >&2; exit 2; }
file=${1:-build/gyre-gpu-check.tar.gz} root=${2:-}
if [ $# = 0 ]; then
  if ! command -v nvcc > /dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    echo "test_bundle.sh: no nvcc here: no bundle"
    exit 0
  fi
  scripts/make_bundle.sh --out "$file"
fi
place=$(mktemp -d ${root:+-p "$root/tmp"})
mounted=''
trap '[ -z "$mounted" ] || umount "$mounted"; rm -rf "$place"' EXIT
# A running system has /proc, and the loader finds $ORIGIN by it.
if [ -n "$root" ] && [ ! -e "$root/proc/self" ]; then
  mount -t proc proc "$root/proc"
  mounted=$root/proc
fi
tar -C "$place" -xzf "$file"
bundle=$place/$(ls "$place")
# in_place COMMAND…: without our environment, in the bundle's folder.
in_place() {
  if [ -n "$root" ]; then
    chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root bash -c 'cd "$0" && "$@"' "${bundle#"$root"}" "$@"
  else
    (cd "$bundle" && env -i PATH=/usr/bin:/bin HOME="$HOME" "$@")
  fi
}
in_place bin/gyre --version
code=0
in_place ./gpu_check.sh --only runtime --out on_gpu || code=$?
[ "$code" = 0 ] || [ "$code" = 3 ] || { echo "test_bundle.sh: gpu_check.sh ended with $code" >&2; exit 1; }
[ "$code" = 0 ] || grep -q '"no_gpu": "' "$bundle/on_gpu/gpu_check.json" ||
  { echo "test_bundle.sh: the JSON does not say why there is no GPU" >&2; exit 1; }
in_place ./gpu_check.sh --device cpu --out on_cpu
echo "the bundle works"
