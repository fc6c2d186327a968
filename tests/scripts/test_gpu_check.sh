#!/usr/bin/env bash
# gpu_check.sh among programs that fail as they do on broken GPUs.
set -uo pipefail
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/bundle failed=0
mkdir -p "$bundle"/{bin,configs,data/fashion_mnist}
cp "$scripts"/gpu_check.sh "$scripts"/gpu_check_stages.sh "$bundle"
printf 'gyre 9.9.9\ncommit 0123abc\n' > "$bundle/VERSION"

# make PROGRAM TEXT: a program of the bundle.
make() { printf '#!/bin/bash\n%s\n' "$2" > "$bundle/bin/$1"; chmod +x "$bundle/bin/$1"; }
gyre_on() {
  make gyre 'case "$1" in
    --version) echo "gyre 9.9.9" ;;
    devices) cat <<END
{
  "cpu": {
    "name": "A CPU",
    "threads": 3
  },
  "cuda": {
    "available": '"$1"',
    "reason": '"$2"',
    "emulated": false,
    "runtime": "13.0",
    "driver": "13.1",
    "devices": [
      {
        "device": "cuda:0",
        "name": "Some GPU",
        "memory_mb": 1000.5,
        "capability": "9.0"
      }
    ]
  }
}
END
    ;;
  esac'
}
# In the form of GoogleTest. A.Two fails when A.One ran before it in the same process, A.One always.
make test_cuda 'case "${2#--gtest_filter=}" in
  CudaMatmul*) printf "[ RUN      ] A.One\n[       OK ] A.One (1 ms)\n[ RUN      ] A.Two\n[       OK ] A.Two (1 ms)\n" ;;
  CudaMemory*) printf "[ RUN      ] A.One\nx.cpp:7: Failure\nwanted \"1\"\n[  FAILED  ] A.One (1 ms)\n[ RUN      ] A.Two\n[  FAILED  ] A.Two (1 ms)\n"; exit 1 ;;
  A.One) exit 1 ;;
  A.Two) exit 0 ;;
  CudaEqLinear*) echo "[ RUN      ] B.Crashes"; kill -SEGV $$ ;;
  \*:-*) echo "[ RUN      ] B.Hangs"; sleep 600 ;;
esac'
make test_simt_gpu 'exit 77'
make test_cuda_train 'echo "[==========] Running 0 tests from 0 test suites."'

check() { "$bundle/gpu_check.sh" --out "$work/out" "$@" > "$work/said" 2>&1; }
json=$work/out/gpu_check.json
# expect CODE WANTED COMMAND…
expect_code() {
  local wanted=$1 code
  shift
  "$@"; code=$?
  [ "$code" = "$wanted" ] || { echo "$*: exit code $code, wanted $wanted"; cat "$work/said"; failed=1; }
}
expect_text() { grep -qF -- "$2" "$1" || { echo "no «$2» in $1:"; cat "$1"; failed=1; }; }
expect_json() {
  ! command -v python3 > /dev/null || python3 -m json.tool "$json" > /dev/null || { echo "not JSON:"; cat "$json"; failed=1; }
}

gyre_on false '"no \"NVIDIA\" driver"'
expect_code 3 check
expect_text "$work/said" 'no GPU: no "NVIDIA" driver'
expect_text "$json" '"no_gpu": "no \"NVIDIA\" driver"'
expect_text "$json" '"ok": false'
expect_json

gyre_on true null
expect_code 1 check --only runtime,products,planes,operations,primitives,models,updates,demo --limit 2
expect_text "$json" '"failed": ["A.One", "A.Two"]'
expect_text "$json" 'x.cpp:7: Failure\nwanted \"1\"'
expect_text "$json" 'A.One fails alone, too'
! grep -q 'A.Two fails alone' "$json" || { echo "A.Two does not fail alone"; failed=1; }
expect_text "$json" '"stage": "products", "ok": true'
expect_text "$json" '"figures": {"tests": 2}'
expect_text "$json" '"failed": ["B.Crashes"]'
expect_text "$json" '"reason": "hung: ended after 2 s"'
expect_text "$json" '"reason": "test_simt_gpu found no device"'
expect_text "$json" '"reason": "no program test_cuda_models"'
expect_text "$json" '"reason": "test_cuda_train has no test for *:-Amp*"'
expect_text "$json" '"gpu": "Some GPU", "memory_mb": 1000.5, "capability": "9.0"'
expect_text "$json" '"cuda_of_driver": "13.1", "cuda_of_build": "13.0"'
expect_text "$json" '"cpu": "A CPU", "threads": 3'
expect_text "$work/said" 'something is WRONG'
expect_json

expect_code 0 check --only products
expect_text "$work/said" 'all is right'
expect_json

expect_code 2 check --only nonsense
expect_text "$work/said" "'nonsense' is not check, train or one of"
expect_code 2 check --only "runtime products"
expect_code 2 check --device gpu
expect_code 2 check --limit 99999999999999999999
expect_code 2 check --cuda-libs "$work"
expect_code 2 check --limit 0
expect_code 2 check --out
expect_code 2 check --build build/release
mkdir "$work/mine" && touch "$work/mine/file"
expect_code 2 check --out "$work/mine"
touch "$work/mine/gpu_check.json"
expect_code 2 check --out "$work/mine"
[ -e "$work/mine/file" ] || { echo "--out removed a folder of others"; failed=1; }
# In nobody's home, with a folder that begins like an option, and while another check runs there.
(cd "$work" && unset HOME && CDPATH=.:/ "$bundle/gpu_check.sh" --only products --out -odd > "$work/said" 2>&1) ||
  { echo "does not run without a home"; cat "$work/said"; failed=1; }
! grep -q 'unbound' "$work/said" || { cat "$work/said"; failed=1; }
exec 8< "$work/-odd/.lock" && flock 8
expect_code 1 check --only products --out "$work/-odd"
expect_text "$work/said" "another check runs in"
exec 8<&-
[ "$failed" = 0 ] && echo "gpu_check.sh tells what is wrong"
exit "$failed"
