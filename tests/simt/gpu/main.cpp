#include <gmock/gmock.h>

#include <cstdio>

#include "core/cuda/runtime.h"

/// Tests of kernels on the first GPU; ctest takes 77 for "there is none".
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const std::string reason = gyre::cuda::unavailable_reason();
  if (!reason.empty()) {
    std::fprintf(stderr, "the tests of kernels on a GPU are left out: %s\n", reason.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
