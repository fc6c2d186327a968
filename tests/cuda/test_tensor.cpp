#include "core/tensor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/random.h"

namespace gyre {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Device gpu = Device::cuda();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr DType all[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::u8};

/// Whole numbers below 251, which every type holds; 250 only roughly in bf16, the same way everywhere.
Tensor whole_numbers(const Shape& shape, DType dtype, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::test);
  return random_uniform(shape, 0, 251, stream, DType::f64).to(DType::i64).to(dtype);
}

/// As to_vector, with NaN written as a number that compares.
std::vector<double> values_of(const Tensor& x) {
  std::vector<double> values = x.to_vector();
  for (double& value : values) value = std::isnan(value) ? -12345 : value;
  return values;
}

TEST(CudaTensor, LivesOnItsDevice) {
  const Tensor x = Tensor::zeros({2, 3}, DType::f32, gpu);
  EXPECT_EQ(x.device(), gpu);
  EXPECT_EQ(x.str(), "f32[2, 3] cuda:0");
  EXPECT_EQ(x.clone().device(), gpu);
  EXPECT_EQ(x.to(gpu).storage(), x.storage());
  EXPECT_EQ(x.transpose(0, 1).contiguous().device(), gpu);
  EXPECT_EQ(x.to(Device::cpu()).device(), Device::cpu());
  const Tensor nothing = Tensor::empty({0, 3}, DType::f32, gpu);
  EXPECT_TRUE(nothing.to(Device::cpu()).to_vector().empty());
  EXPECT_EQ(nothing.clone().to(DType::f64).shape(), Shape({0, 3}));
}

TEST(CudaTensor, RoundTripsInEveryType) {
  for (const DType dtype : all) {
    const Tensor x = whole_numbers({7, 5, 3}, dtype, 1);
    const Tensor there = x.to(gpu);
    EXPECT_EQ(there.to(Device::cpu()).to_vector(), x.to_vector());
    EXPECT_EQ(there.clone().to_vector(), x.to_vector());
    EXPECT_EQ(x.transpose(0, 2).to(gpu).to_vector(), x.transpose(0, 2).to_vector());
    EXPECT_EQ(there.transpose(0, 2).to(Device::cpu()).to_vector(), x.transpose(0, 2).to_vector());
    EXPECT_EQ(x.slice(1, 1, 4, 2).to(gpu).to_vector(), x.slice(1, 1, 4, 2).to_vector());
  }
}

TEST(CudaTensor, FillsAndReadsElements) {
  for (const DType dtype : all) {
    EXPECT_THAT(Tensor::full({3, 37}, 3, dtype, gpu).to_vector(), Each(3));
    EXPECT_THAT(Tensor::ones({2, 1}, dtype, gpu).to_vector(), ElementsAre(1, 1));
    Tensor x = Tensor::zeros({4, 6}, dtype, gpu);
    x.slice(1, 1, 6, 2).slice(0, 1, 3).fill_(2);
    EXPECT_THAT(x.to_vector(),
                ElementsAre(0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0));
    EXPECT_EQ(x.at({2, 3}), 2);
    EXPECT_EQ(x.slice(0, 1, 2).slice(1, 1, 2).item(), 2);
    x.slice(0, 0, 1).slice(1, 0, 1).expand({5, 3}).fill_(1);
    EXPECT_EQ(x.at({0, 0}), 1);
  }
  EXPECT_EQ(Tensor::full({1}, 300, DType::u8, gpu).item(), 255);
  EXPECT_EQ(Tensor::full({1}, 1.0 / 3, DType::f64, gpu).item(), 1.0 / 3);
  EXPECT_TRUE(std::isnan(Tensor::full({1}, nan, DType::bf16, gpu).item()));
  EXPECT_EQ(Tensor::full({}, -1.5, DType::f16, gpu).item(), -1.5);
  EXPECT_THROW(Tensor::zeros({2}, DType::f32, gpu).item(), ShapeError);
}

TEST(CudaTensor, ConvertsAsTheCpuDoes) {
  const std::vector<double> hard{-1.9,   -0.5,    0,          2.99,        254.7,         255,
                                 1e300,  -1e300,  infinity,   -infinity,   nan,           65504,
                                 65520,  0x1p-24, 0x1p-26,    1.0 / 3,     -7e4,          0x1p-130,
                                 9.3e18, -9.3e18, 0x1p53 + 2, 1 + 0x1p-11, 1 + 3 * 0x1p-8};
  const auto count = static_cast<std::int64_t>(hard.size());
  for (const DType from : all) {
    for (const DType to : all) {
      SCOPED_TRACE(fmt::format("{} to {}", from, to));
      const Tensor x = Tensor::from(hard, {count}).to(from);
      EXPECT_EQ(values_of(x.to(gpu).to(to)), values_of(x.to(to)));
      const Tensor strided = whole_numbers({40, 9, 35}, from, 2).transpose(0, 2).slice(1, 0, 9, 4);
      EXPECT_EQ(strided.to(gpu).transpose(0, 2).to(to).to_vector(),
                strided.transpose(0, 2).to(to).to_vector());
    }
  }
  const Tensor largest = Tensor::full({1}, 9.3e18, DType::i64);
  EXPECT_EQ(largest.to(gpu).to(DType::u8).item(), 255);
}

/// Views of one base, as every operation hands them to a copy.
const std::vector<std::function<Tensor(const Tensor&)>>& views() {
  static const std::vector<std::function<Tensor(const Tensor&)>> list{
      [](const Tensor& x) { return x; },
      [](const Tensor& x) { return x.transpose(0, 3); },
      [](const Tensor& x) { return x.transpose(2, 3); },
      [](const Tensor& x) {
        return x.permute({2, 0, 3, 1});
      },
      [](const Tensor& x) {
        return x.permute({3, 2, 1, 0});
      },
      [](const Tensor& x) {
        return x.permute({1, 3, 0, 2}).slice(1, 1, 33, 3);
      },
      [](const Tensor& x) { return x.slice(3, 2, 34).slice(2, 1, 5); },
      [](const Tensor& x) { return x.slice(3, 0, 36, 2); },
      [](const Tensor& x) {
        return x.slice(0, 1, 2).expand({5, 3, 6, 36});
      },
      [](const Tensor& x) {
        return x.slice(3, 7, 8).expand({2, 3, 6, 70});
      },
      [](const Tensor& x) { return x.select(1, 2).transpose(0, 1); },
      [](const Tensor& x) { return x.select(0, 1).select(0, 1).select(0, 3); },
      [](const Tensor& x) {
        return x.reshape({6, 6, 36}).transpose(0, 2);
      },
      [](const Tensor& x) { return x.slice(0, 1, 1); },
  };
  return list;
}

TEST(CudaTensor, CopiesEveryView) {
  for (const DType dtype : all) {
    const Tensor x = whole_numbers({2, 3, 6, 36}, dtype, 3), there = x.to(gpu);
    for (std::size_t i = 0; i < views().size(); ++i) {
      SCOPED_TRACE(fmt::format("{} view {}", dtype, i));
      const Tensor wanted = views()[i](x);
      const Tensor view = views()[i](there);
      EXPECT_EQ(view.clone().to_vector(), wanted.to_vector());
      EXPECT_EQ(view.to_vector(), wanted.to_vector());
      // Into a view of the same form, which leaves its surroundings alone.
      if (i == 8 || i == 9) continue;  // expanded
      Tensor base = Tensor::full(x.shape(), 7, dtype), base_there = base.to(gpu);
      views()[i](base).copy_(wanted);
      views()[i](base_there).copy_(view.contiguous());
      EXPECT_EQ(base_there.to_vector(), base.to_vector());
      base = Tensor::full(x.shape(), 7, dtype), base_there = base.to(gpu);
      views()[i](base).copy_(wanted.clone());
      views()[i](base_there).copy_(view);
      EXPECT_EQ(base_there.to_vector(), base.to_vector());
    }
  }
}

TEST(CudaTensor, CopyBroadcastsConvertsAndMindsOverlap) {
  const Tensor row = whole_numbers({5}, DType::i64, 4);
  Tensor x = Tensor::empty({3, 5}, DType::bf16, gpu);
  x.copy_(row.to(gpu));
  EXPECT_EQ(x.to_vector(), row.to(DType::bf16).expand({3, 5}).to_vector());
  Tensor square = whole_numbers({40, 40}, DType::f32, 5).to(gpu);
  const std::vector<double> turned = square.transpose(0, 1).to_vector();
  square.copy_(square.transpose(0, 1));
  EXPECT_EQ(square.to_vector(), turned);
  EXPECT_THAT([&] { x.copy_(row); }, ThrowsMessage<DeviceError>("copy_: tensors on cuda:0 and cpu"));
  EXPECT_THAT([&] { Tensor::zeros({3}).copy_(Tensor::zeros({3}, DType::f32, gpu)); },
              ThrowsMessage<DeviceError>("copy_: tensors on cpu and cuda:0"));
}

TEST(CudaTensor, LargeTransposesAndRowsOfAnyAlignment) {
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    const Tensor x = whole_numbers({3, 67, 130}, dtype, 6), there = x.to(gpu);
    EXPECT_EQ(there.transpose(1, 2).clone().to_vector(), x.transpose(1, 2).to_vector());
    EXPECT_EQ(there.permute({2, 0, 1}).clone().to_vector(), x.permute({2, 0, 1}).to_vector());
    for (const std::int64_t start : {0, 1, 2, 3, 8, 16}) {
      const Tensor rows = x.slice(2, start, start + 64), rows_there = there.slice(2, start, start + 64);
      EXPECT_EQ(rows_there.clone().to_vector(), rows.to_vector());
      Tensor into = Tensor::zeros({3, 67, 96}, dtype, gpu);
      into.slice(2, start, start + 64).copy_(rows_there);
      EXPECT_EQ(into.slice(2, start, start + 64).to_vector(), rows.to_vector());
      EXPECT_EQ(into.slice(2, 0, start).to_vector(),
                std::vector<double>(static_cast<std::size_t>(201 * start)));
    }
  }
}

TEST(CudaTensor, VersionsFollowWrites) {
  Tensor x = Tensor::zeros({4}, DType::f32, gpu);
  const std::uint64_t before = x.version();
  x.to_vector();
  x.to(Device::cpu());
  EXPECT_EQ(x.version(), before);
  x.slice(0, 0, 1).fill_(1);
  EXPECT_GT(x.version(), before);
  EXPECT_NE(x.clone().version(), x.version());
}

TEST(CudaTensor, MissingDevicesAreNamed) {
  const int count = 99;
  EXPECT_THAT([&] { Tensor::zeros({2}, DType::f32, Device::cuda(count)); },
              ThrowsMessage<DeviceError>(HasSubstr("cuda:99 is not available: ")));
  EXPECT_THAT([] { parse_device("cuda:99"); },
              ThrowsMessage<DeviceError>(HasSubstr("device 'cuda:99' is not available: ")));
  EXPECT_EQ(parse_device("cuda"), gpu);
}

}  // namespace
}  // namespace gyre
