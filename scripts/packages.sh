#!/usr/bin/env bash
# Installs the Debian packages that gyre needs and the system lacks: packages.sh [build] [test] [data]
set -euo pipefail

build="g++ cmake ninja-build libdnnl-dev libhwy-dev libeigen3-dev libyaml-cpp-dev libfmt-dev nlohmann-json3-dev
       libcli11-dev zlib1g-dev libjpeg62-turbo-dev libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev"
test="libgtest-dev libgmock-dev ccache"
data="dataset-fashion-mnist"

missing=()
for set in "${@:-build}"; do
  case "$set" in
    build | test | data) ;;
    *) echo "packages.sh: unknown set '$set' (build, test, data)" >&2; exit 2 ;;
  esac
  for package in ${!set}; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
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
quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update
quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
