#include <gmock/gmock.h>

#include "core/cuda/runtime.h"
#include "core/device.h"
#include "core/dtype.h"

namespace gyre {
namespace {

using testing::ThrowsMessage;

constexpr DType all[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::u8};

TEST(DType, NamesRoundTrip) {
  for (const DType dtype : all) EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  EXPECT_EQ(fmt::format("{:>5}", DType::bf16), " bf16");
}

TEST(DType, SizesMatchTheCppTypes) {
  EXPECT_EQ(size_of(dtype_of<double>()), sizeof(double));
  EXPECT_EQ(size_of(dtype_of<float>()), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<std::int64_t>()), sizeof(std::int64_t));
  EXPECT_EQ(size_of(dtype_of<std::uint8_t>()), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
}

TEST(DType, FloatingAreTheFourFloatTypes) {
  for (const DType dtype : all) EXPECT_EQ(is_floating(dtype), dtype != DType::i64 && dtype != DType::u8);
}

TEST(DType, RefusesOtherNames) {
  for (const std::string_view name : {"", "f3", "f322", "F32", "int"}) {
    EXPECT_THAT([&] { parse_dtype(name); },
                ThrowsMessage<DTypeError>("data type '" + std::string(name) +
                                          "': expected f64, f32, f16, bf16, i64 or u8"));
  }
}

TEST(DType, DispatchPicksTheTypeOrNamesTheOperation) {
  EXPECT_EQ(dispatch_floating(DType::f32, "op", [](auto x) { return sizeof x; }), 4u);
  EXPECT_EQ(dispatch_floating(DType::f64, "op", [](auto x) { return sizeof x; }), 8u);
  EXPECT_THAT([] { dispatch_floating(DType::u8, "softmax", [](auto) {}); },
              ThrowsMessage<DTypeError>("softmax takes f32 or f64, not u8"));
}

TEST(Device, ParsesTheCpuAndAuto) {
  EXPECT_EQ(parse_device("cpu"), Device::cpu());
  EXPECT_EQ(parse_device("auto").is_cuda(), cuda_unavailable_reason().empty() && !cuda::emulated());
  EXPECT_EQ(Device::cpu().str(), "cpu");
  EXPECT_EQ(Device::cuda(3).str(), "cuda:3");
}

TEST(Device, MissingCudaGivesTheReason) {
  if (cuda_unavailable_reason().empty()) {
    EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
    return;
  }
  for (const std::string name : {"cuda", "cuda:1"}) {
    EXPECT_THAT(
        [&] { parse_device(name); },
        ThrowsMessage<DeviceError>("device '" + name + "' is not available: " + cuda_unavailable_reason()));
  }
}

TEST(Device, DescribesWhatComputes) {
  const std::string reason = cuda_unavailable_reason();
  EXPECT_THAT(describe(Device::cpu()), testing::AnyOf("cpu", "cpu (CUDA: " + reason + ")"));
  if (reason.empty()) {
    EXPECT_THAT(describe(Device::cuda()), testing::MatchesRegex("cuda:0, .+, [0-9.]+ GB"));
  } else {
    EXPECT_THROW(describe(Device::cuda()), DeviceError);
  }
}

TEST(Device, RefusesOtherNames) {
  for (const std::string name : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "CPU"}) {
    EXPECT_THAT([&] { parse_device(name); },
                ThrowsMessage<DeviceError>("device '" + name + "': expected auto, cpu, cuda or cuda:N"));
  }
}

}  // namespace
}  // namespace gyre
