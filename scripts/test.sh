#!/usr/bin/env bash
# Installs what is missing, builds gyre and runs all tests: test.sh [release|debug|asan|tsan]
# GYRE_CMAKE_FLAGS: more arguments for the configure step.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
case "$preset" in
  release | debug | asan | tsan) ;;
  *) echo "usage: scripts/test.sh [release|debug|asan|tsan]" >&2; exit 2 ;;
esac
scripts/packages.sh build test data
# The demo leaves tests out of the same build folder.
cmake --preset "$preset" -DGYRE_TESTS=ON -DGYRE_EXAMPLES=ON ${GYRE_CMAKE_FLAGS:-}
cmake --build --preset "$preset"
ctest --preset "$preset"
