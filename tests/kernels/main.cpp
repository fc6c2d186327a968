#include <gmock/gmock.h>

#include <cstdio>

#include "core/error.h"
#include "kernels/cpu/simd.h"

/// One process tests one instruction set (GYRE_SIMD); ctest takes 77 for "this machine lacks it".
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  try {
    gyre::kernels::cpu::simd();
  } catch (const gyre::DeviceError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 77;
  }
  return RUN_ALL_TESTS();
}
