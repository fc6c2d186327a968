#include "core/tensor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/memory.h"

namespace gyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  return Tensor::arange(shape.numel(), dtype).reshape(shape);
}

TEST(Tensor, DescribesItself) {
  const Tensor x = Tensor::empty({2, 3});
  EXPECT_EQ(x.str(), "f32[2, 3] cpu");
  EXPECT_EQ(Tensor::empty({}, DType::bf16).str(), "bf16[] cpu");
  EXPECT_EQ(Tensor().str(), "undefined");
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.strides(), (Shape{3, 1}));
}

TEST(Tensor, Fills) {
  for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::u8}) {
    EXPECT_THAT(Tensor::full({2, 2}, 7, dtype).to_vector(), ElementsAre(7, 7, 7, 7));
    EXPECT_THAT(Tensor::ones({2}, dtype).to_vector(), ElementsAre(1, 1));
    EXPECT_THAT(Tensor::zeros({2}, dtype).to_vector(), ElementsAre(0, 0));
    EXPECT_THAT(Tensor::arange(4, dtype).to_vector(), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(Tensor::full({}, 3, dtype).item(), 3);
    EXPECT_EQ(Tensor::zeros({2, 0}, dtype).numel(), 0);
  }
  EXPECT_TRUE(std::isnan(Tensor::full({1}, nan).item()));
  EXPECT_EQ(Tensor::arange(0).shape(), (Shape{0}));
  EXPECT_THAT([] { Tensor::arange(-1); },
              ThrowsMessage<ShapeError>("arange takes a count of at least 0, not -1"));
}

TEST(Tensor, FillsViewsAndNothingElse) {
  Tensor x = Tensor::zeros({3, 4});
  Tensor column = x.select(1, 2);
  column.fill_(5);
  EXPECT_THAT(x.to_vector(), ElementsAre(0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0));
  Tensor wide = x.select(0, 1).expand({6, 4});
  wide.fill_(9);
  EXPECT_THAT(x.to_vector(), ElementsAre(0, 0, 5, 0, 9, 9, 9, 9, 0, 0, 5, 0));
  Tensor large = Tensor::empty({300, 700});
  large.transpose(0, 1).slice(0, 1, 700, 2).fill_(1);
  large.transpose(0, 1).slice(0, 0, 700, 2).fill_(2);
  const auto values = large.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i % 2 == 0 ? 2 : 1) << i;
}

TEST(Tensor, TakesValues) {
  EXPECT_THAT(Tensor::from({1.5, 2.5}, {2, 1}).to_vector(), ElementsAre(1.5, 2.5));
  EXPECT_EQ(Tensor::from({1.5f}, {}).dtype(), DType::f32);
  EXPECT_EQ(Tensor::from<std::int64_t>({1, 2}, {2}).dtype(), DType::i64);
  EXPECT_EQ(Tensor::from(std::vector<std::uint8_t>{255}, {1}).item(), 255);
  EXPECT_EQ(Tensor::from(std::vector<float>{}, {0, 3}).numel(), 0);
  EXPECT_THAT(
      [] {
        Tensor::from({1.0, 2.0}, {3});
      },
      ThrowsMessage<ShapeError>("2 values do not fill shape [3]"));
}

TEST(Tensor, RefusesBadShapes) {
  EXPECT_THAT(
      [] {
        Tensor::empty({2, -1});
      },
      ThrowsMessage<ShapeError>("shape [2, -1] has a negative extent"));
  EXPECT_THAT([] { Tensor::empty({std::int64_t{1} << 62}); },
              ThrowsMessage<ShapeError>(HasSubstr("2^63 bytes")));
}

TEST(Tensor, UndefinedTensorsSaySo) {
  Tensor none;
  EXPECT_FALSE(none.defined());
  const auto error = ThrowsMessage<Error>("the tensor is undefined");
  EXPECT_THAT([&] { none.data<float>(); }, error);
  EXPECT_THAT([&] { none.raw_mutable_data(); }, error);
  EXPECT_THAT([&] { none.version(); }, error);
  EXPECT_THAT([&] { none.device(); }, error);
  EXPECT_THAT([&] { none.to_vector(); }, error);
  EXPECT_THAT([&] { none.item(); }, error);
  EXPECT_THAT([&] { none.fill_(0); }, error);
  EXPECT_THAT([&] { none.contiguous().clone(); }, error);
  EXPECT_THAT([&] { none.to(DType::f64); }, error);
  EXPECT_THAT([&] { none.reshape({1}); }, error);
  EXPECT_THAT([&] { none.expand({1}); }, error);
  EXPECT_THAT([&] { Tensor::zeros({1}).copy_(none); }, error);
  EXPECT_THAT([&] { none.copy_(Tensor::zeros({1})); }, error);
}

TEST(Tensor, ReadsOnlyAsItsOwnType) {
  Tensor x = Tensor::zeros({1});
  EXPECT_THAT([&] { x.data<double>(); }, ThrowsMessage<DTypeError>("a tensor of f32 was read as f64"));
  EXPECT_THAT([&] { x.mutable_data<std::int64_t>(); },
              ThrowsMessage<DTypeError>("a tensor of f32 was written as i64"));
}

TEST(Tensor, CopiesShareStorageAndVersion) {
  Tensor a = Tensor::zeros({4});
  Tensor b = a;
  const Tensor c = a.slice(0, 1, 3);
  const std::uint64_t before = a.version();
  a.data<float>();
  EXPECT_EQ(c.version(), before);
  b.mutable_data<float>()[2] = 6;
  EXPECT_EQ(a.at({2}), 6);
  EXPECT_NE(a.version(), before);
  EXPECT_EQ(a.version(), c.version());
  const Tensor d = a.clone();
  EXPECT_NE(d.storage(), a.storage());
  EXPECT_NE(d.version(), a.version());
}

TEST(Tensor, InPlaceOperationsRenewTheVersion) {
  Tensor x = Tensor::zeros({4});
  std::uint64_t before = x.version();
  const auto changed = [&] { return std::exchange(before, x.version()) != x.version(); };
  x.fill_(0);
  EXPECT_TRUE(changed());
  x.slice(0, 0, 2).copy_(Tensor::ones({2}));
  EXPECT_TRUE(changed());
  x.contiguous();
  x.to(DType::f64);
  x.to_vector();
  x.reshape({2, 2}).clone();
  EXPECT_FALSE(changed());
}

TEST(Tensor, ElementAccessChecksItsIndex) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(x.at({1, 2}), 5);
  EXPECT_EQ(x.transpose(0, 1).at({2, 0}), 2);
  EXPECT_EQ(Tensor::ones({}).at({}), 1);
  EXPECT_THAT([&] { x.at({1}); }, ThrowsMessage<ShapeError>("index [1] does not fit shape [2, 3]"));
  EXPECT_THROW(x.at({2, 0}), ShapeError);
  EXPECT_THROW(x.at({0, -1}), ShapeError);
  EXPECT_THAT([&] { x.item(); },
              ThrowsMessage<ShapeError>("item takes a tensor of one element, not f32[2, 3] cpu"));
  EXPECT_THROW(Tensor::empty({0}).item(), ShapeError);
}

TEST(Tensor, ConvertsTruncatingAndSaturating) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::from({-1.9, -0.5, 0.0, 2.99, 254.7, 255.0, 1e300, -1e300, inf, -inf, nan}, {11});
  EXPECT_THAT(x.to(DType::u8).to_vector(), ElementsAre(0, 0, 0, 2, 254, 255, 255, 0, 255, 0, 0));
  const Tensor i = x.to(DType::i64);
  EXPECT_THAT(i.slice(0, 0, 6).to_vector(), ElementsAre(-1, 0, 0, 2, 254, 255));
  constexpr auto most = std::numeric_limits<std::int64_t>::max(),
                 least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(i.data<std::int64_t>()[6], most);
  EXPECT_EQ(i.data<std::int64_t>()[7], least);
  EXPECT_EQ(i.data<std::int64_t>()[8], most);
  EXPECT_EQ(i.data<std::int64_t>()[9], least);
  EXPECT_EQ(i.data<std::int64_t>()[10], 0);
  EXPECT_EQ(x.to(DType::f32).to(DType::i64).data<std::int64_t>()[6], most);
  EXPECT_THAT(Tensor::from<std::int64_t>({-3, 7, 300}, {3}).to(DType::u8).to_vector(),
              ElementsAre(0, 7, 255));
  EXPECT_EQ(Tensor::from({0.1}, {1}).to(DType::f32).item(), static_cast<double>(0.1f));
  EXPECT_EQ(x.to(DType::f64).storage(), x.storage());
  EXPECT_EQ(x.to(Device::cpu()).storage(), x.storage());
}

Tensor half_tensor(const std::vector<std::uint16_t>& bits, DType dtype) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(bits.size())}, dtype);
  std::memcpy(tensor.raw_mutable_data(), bits.data(), bits.size() * 2);
  return tensor;
}

TEST(Tensor, HalfTypesWidenExactly) {
  // One, -2, the largest, the smallest normal, the largest and the smallest subnormal, -0.
  const std::vector<std::uint16_t> halves{0x3C00, 0xC000, 0x7BFF, 0x0400, 0x03FF, 0x0001, 0x8000};
  const std::vector<double> values{1, -2, 65504, 0x1p-14, 1023 * 0x1p-24, 0x1p-24, 0};
  for (const DType wide : {DType::f32, DType::f64})
    EXPECT_EQ(half_tensor(halves, DType::f16).to(wide).to_vector(), values);
  EXPECT_TRUE(std::signbit(half_tensor({0x8000}, DType::f16).item()));
  EXPECT_EQ(half_tensor({0x7C00}, DType::f16).item(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(half_tensor({0xFC00}, DType::f16).item(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(half_tensor({0x7E01}, DType::f16).item()));
  EXPECT_THAT(half_tensor({0x3F80, 0xC000, 0x7F7F, 0x0001}, DType::bf16).to(DType::f32).to_vector(),
              ElementsAre(1, -2, 0x1.FEp127, 0x1p-133));
  // Strided, in both orders of the loops, and to integers.
  std::vector<std::uint16_t> many;
  for (int i = 0; i < 40 * 50; ++i) many.push_back(static_cast<std::uint16_t>(i * 7));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor flat = half_tensor(many, dtype), turned = flat.reshape({40, 50}).transpose(0, 1);
    EXPECT_EQ(turned.to(DType::f32).to_vector(),
              flat.to(DType::f32).reshape({40, 50}).transpose(0, 1).to_vector());
  }
  EXPECT_EQ(half_tensor({0x4248}, DType::f16).to(DType::i64).item(), 3);
}

std::vector<int> bits_of(const Tensor& half) {
  const auto* bits = static_cast<const std::uint16_t*>(half.raw_data());
  return {bits, bits + half.numel()};
}

TEST(Tensor, HalfTypesAreCopiedBitByBit) {
  const auto bits = Tensor::from(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {12});
  const Tensor half = Tensor::view_of(bits.storage(), {2, 3}, {3, 1}, DType::bf16);
  const Tensor turned = half.transpose(0, 1).contiguous();
  EXPECT_THAT(Tensor::view_of(turned.storage(), {12}, {1}, DType::u8).to_vector(),
              ElementsAre(1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12));
}

TEST(Tensor, NarrowingToHalfTypesRoundsToNearestEven) {
  // Ties, the largest, the first that overflows, subnormals and what vanishes.
  const std::vector<double> values{1,       -2,      1 + 0x1p-11, 1 + 3 * 0x1p-11, 65504,    65519.9,  65520,
                                   0x1p-24, 0x1p-25, 0x1.8p-25,   0x1.ffcp-15,     -0x1p-30, infinity, nan};
  EXPECT_THAT(bits_of(Tensor::from(values, {14}).to(DType::f16)),
              ElementsAre(0x3C00, 0xC000, 0x3C00, 0x3C02, 0x7BFF, 0x7BFF, 0x7C00, 0x0001, 0, 0x0001, 0x0400,
                          0x8000, 0x7C00, 0x7FFF));
  const std::vector<float> floats{
      1, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, -0x1.FFFFFEp127F, 0x1p-133F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THAT(bits_of(Tensor::from(floats, {6}).to(DType::bf16)),
              ElementsAre(0x3F80, 0x3F80, 0x3F82, 0xFF80, 0x0001, 0x7FFF));
  // Every half survives the way there and back, strided or not.
  std::vector<std::uint16_t> all;
  for (int i = 0; i < 0x10000; ++i) {
    if ((i & 0x7FFF) <= 0x7C00) all.push_back(static_cast<std::uint16_t>(i));
  }
  const Tensor halves = half_tensor(all, DType::f16);
  EXPECT_EQ(bits_of(halves.to(DType::f32).to(DType::f16)), bits_of(halves));
  const Tensor turned = halves.reshape({2, -1}).transpose(0, 1);
  EXPECT_EQ(bits_of(turned.to(DType::f64).to(DType::f16)), bits_of(turned.contiguous()));
  EXPECT_EQ(half_tensor({0x4248}, DType::f16).to(DType::bf16).item(), 3.140625);
  EXPECT_THAT(Tensor::arange(3).to(DType::f16).to_vector(), ElementsAre(0, 1, 2));
  EXPECT_THAT(Tensor::full({2}, 1.0 / 3, DType::bf16).to_vector(), ElementsAre(0x1.56p-2, 0x1.56p-2));
  EXPECT_THAT(bits_of(Tensor::zeros({2}, DType::f16)), ElementsAre(0, 0));
}

TEST(Tensor, RequirementsNameTheOperation) {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3}, DType::f64);
  require_same_device(a, b, "add");
  require_same_dtype(a, a, "add");
  require_shape(a, {2, 3}, "add");
  EXPECT_THAT([&] { require_same_dtype(a, b, "add"); },
              ThrowsMessage<DTypeError>("add: tensors of f32 and f64"));
  EXPECT_THAT([&] { require_shape(a, {3}, "bias"); },
              ThrowsMessage<ShapeError>("bias: expected shape [3], got [2, 3]"));
}

}  // namespace
}  // namespace gyre
