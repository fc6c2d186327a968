# Cross-builds for 64-bit Arm with Debian's compiler and runs tests under qemu (scripts/test_arm64.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# `max` has SVE2 as well, which the kernels must leave alone.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-cpu;max)
