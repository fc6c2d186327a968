#!/usr/bin/env bash
# Runs the tests of CUDA tensors, operations and models without a GPU: kernels are built for the emulator of the tests,
# products by Eigen. GYRE_CMAKE_FLAGS: more arguments for the configure step.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh build test data
cmake --preset emulated ${GYRE_CMAKE_FLAGS:-}
cmake --build --preset emulated
ctest --preset emulated
