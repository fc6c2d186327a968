#include <gmock/gmock.h>

#include <cstdio>

#include "tests/cuda/device.h"

/// Tests of tensors and operations on a CUDA device, real or emulated; ctest takes 77 for "there is none".
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const std::string reason = gyre::cuda_unavailable_reason();
  if (gyre::device_under_test().is_cuda() && !reason.empty()) {
    std::fprintf(stderr, "the CUDA tests are left out: %s\n", reason.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
