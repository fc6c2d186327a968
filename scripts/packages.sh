#!/usr/bin/env bash
# Installs the Debian packages that gyre needs and the system lacks: packages.sh [build] [test] [data] [cross] [fuzz]
set -euo pipefail

build="g++ cmake ninja-build libdnnl-dev libhwy-dev libeigen3-dev libyaml-cpp-dev libfmt-dev nlohmann-json3-dev
       libcli11-dev zlib1g-dev libjpeg62-turbo-dev libpng-dev libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev"
test="libgtest-dev libgmock-dev libboost-context-dev ccache"
data="dataset-fashion-mnist"
cross="g++-aarch64-linux-gnu qemu-user libhwy-dev:arm64 libfmt-dev:arm64 libgtest-dev:arm64 libgmock-dev:arm64
       libgomp1:arm64"
fuzz="clang"

# Whether a package is there for this machine, or for the architecture that its name ends with.
installed() {
  local architecture
  case "$1" in *:*) architecture=${1##*:} ;; *) architecture=$(dpkg --print-architecture) ;; esac
  dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null |
    grep -E "^($architecture|all) installed\$" > /dev/null
}

missing=()
for set in "${@:-build}"; do
  case "$set" in
    build | test | data | cross | fuzz) ;;
    *) echo "packages.sh: unknown set '$set' (build, test, data, cross, fuzz)" >&2; exit 2 ;;
  esac
  for package in ${!set}; do
    installed "$package" || missing+=("$package")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo > /dev/null || { echo "packages.sh: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" > "$log" 2>&1 || { tail -n 20 "$log" >&2; echo "packages.sh: failed: $*" >&2; exit 1; }; }
case "${missing[*]}" in *:arm64*) quietly "${as_root[@]}" dpkg --add-architecture arm64 ;; esac
quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update
quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
