#!/usr/bin/env bash
# Cross-builds the kernels for 64-bit Arm and runs their tests under qemu, once per instruction set. Correctness only: qemu's
# speed says nothing. GYRE_CMAKE_FLAGS: more arguments for the configure step.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh build cross
cmake --preset arm64 ${GYRE_CMAKE_FLAGS:-}
cmake --build --preset arm64
ctest --preset arm64
