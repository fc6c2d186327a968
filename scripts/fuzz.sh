#!/usr/bin/env bash
# Throws changed files at the safetensors reader, led by coverage, under AddressSanitizer: fuzz.sh [SECONDS [OPTION…]], with
# options of libFuzzer that override those below, such as -timeout=300 on a machine that may be suspended.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS [OPTION…]]" >&2; exit 2; }
[ $# = 0 ] || shift
scripts/packages.sh build test fuzz
cmake --preset fuzz > /dev/null
cmake --build --preset fuzz --target fuzz_safetensors test_fuzz
work=build/fuzz/safetensors
mkdir -p "$work/corpus" "$work/found"
GYRE_FUZZ_SEEDS=$work/seeds build/fuzz/tests/test_fuzz --gtest_brief=1
# An input that fails stays in found/; memory and time of one input are bounded.
build/fuzz/tests/fuzz_safetensors -max_total_time="$seconds" -dict=tests/fuzz/safetensors.dict -max_len=65536 \
  -malloc_limit_mb=64 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -artifact_prefix="$work/found/" \
  "$@" "$work/corpus" "$work/seeds"
echo "survived $seconds seconds"
