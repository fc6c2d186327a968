#include <gmock/gmock.h>

#include <cstdio>
#include <string>

#include "tests/cuda/device.h"

namespace {

/// Tests of CUDA itself and of 16-bit products have no CPU form.
constexpr const char* cuda_alone =
    "CudaMemory.*:CudaRuntime.*:CudaUpload.*:CudaDevices.*:CudaTensor.*:CudaGemm.*:CudaProgram.*:"
    "CudaProfile.*:Amp.*:AmpRun.*:Autocast.*:*AutocastModel.*";

}  // namespace

/// Tests of tensors and operations on a CUDA device, real or emulated; ctest takes 77 for "there is none".
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const std::string reason = gyre::cuda_unavailable_reason();
  if (gyre::device_under_test().is_cuda() && !reason.empty()) {
    std::fprintf(stderr, "the CUDA tests are left out: %s\n", reason.c_str());
    return 77;
  }
  if (gyre::device_under_test().is_cpu()) {
    const std::string filter = GTEST_FLAG_GET(filter);
    GTEST_FLAG_SET(filter, filter + (filter.find('-') == std::string::npos ? "-" : ":") + cuda_alone);
  }
  return RUN_ALL_TESTS();
}
