#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/half.h"
#include "tests/simt/cases.h"
#include "tests/simt/support.h"

namespace gyre::simt {
namespace {

std::vector<float> floats() {
  std::vector<float> result{0.0F,       -0.0F,    1.0F,     65504.0F, 65519.9F, 65520.0F, -65520.0F, 1e30F,
                            6.1035e-5F, 5.96e-8F, 2.98e-8F, 2.99e-8F, 1e-45F,   3.4e38F,  -3.4e38F};
  result.push_back(std::numeric_limits<float>::infinity());
  result.push_back(-std::numeric_limits<float>::infinity());
  // Halfway between two halves or bfloat16s, and one step to both sides.
  for (const unsigned half : {0x3F801000U, 0x3F803000U, 0x3F808000U, 0x3F818000U, 0x38801000U, 0x33800000U})
    for (const unsigned bits : {half - 1, half, half + 1}) result.push_back(std::bit_cast<float>(bits));
  std::mt19937 generator(18);
  while (result.size() < 40000) {
    // All exponents in turn, those of halves more often.
    const auto r = static_cast<std::uint32_t>(generator());
    const std::uint32_t exponent = result.size() % 4 == 0 ? r >> 24 & 0xFFU : 100U + (r >> 24) % 50U;
    const float f = std::bit_cast<float>((r & 0x807FFFFFU) | exponent << 23);
    if (!std::isnan(f)) result.push_back(f);
  }
  return result;
}

// The nearest of all values that have `fraction` bits after the first and exponents of at least `least`; ties
// to even.
double rounded(double x, int fraction, int least, double largest) {
  if (x == 0 || std::isinf(x)) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), least) - fraction);
  const double result = std::nearbyint(x / step) * step;
  return std::abs(result) > largest ? std::copysign(std::numeric_limits<double>::infinity(), x) : result;
}

TEST(Numbers, EveryPatternWidensExactly) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  Buffer<std::uint16_t> bits(patterns);
  auto half = Buffer<float>::output(patterns.size()), bf16 = Buffer<float>::output(patterns.size());
  cases::from_bits(bits.data(), half.data(), bf16.data(), static_cast<std::int64_t>(patterns.size()),
                   nullptr);
  const std::vector<float> halves = half.values(), bf16s = bf16.values();
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto wanted = static_cast<float>(std::bit_cast<Half>(patterns[i]));
    if (std::isnan(wanted))
      ASSERT_TRUE(std::isnan(halves[i])) << i;
    else
      ASSERT_EQ(std::bit_cast<std::uint32_t>(halves[i]), std::bit_cast<std::uint32_t>(wanted)) << i;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(bf16s[i]), static_cast<std::uint32_t>(i << 16)) << i;
  }
}

TEST(Numbers, NarrowToTheNearest) {
  const std::vector<float> values = floats();
  Buffer<float> x(values);
  auto half = Buffer<std::uint16_t>::output(values.size()),
       bf16 = Buffer<std::uint16_t>::output(values.size());
  auto tf32 = Buffer<std::uint32_t>::output(values.size());
  cases::to_bits(x.data(), half.data(), bf16.data(), tf32.data(), static_cast<std::int64_t>(values.size()),
                 nullptr);
  const std::vector<std::uint16_t> halves = half.values(), bf16s = bf16.values();
  const std::vector<std::uint32_t> tf32s = tf32.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto v = static_cast<double>(values[i]);
    const auto as_half = static_cast<double>(static_cast<float>(std::bit_cast<Half>(halves[i])));
    const auto as_bf16 = static_cast<double>(static_cast<float>(std::bit_cast<BFloat16>(bf16s[i])));
    const auto as_tf32 = static_cast<double>(std::bit_cast<float>(tf32s[i]));
    ASSERT_EQ(as_half, rounded(v, 10, -14, 65504)) << values[i];
    ASSERT_EQ(as_bf16, rounded(v, 7, -126, 3.3895313892515355e38)) << values[i];
    ASSERT_EQ(std::signbit(as_half), std::signbit(v)) << values[i];
    ASSERT_EQ(tf32s[i] & 0x1FFFU, 0U) << values[i];
    if (std::isfinite(v) && std::isfinite(as_tf32)) {
      ASSERT_LE(std::abs(as_tf32 - v), std::ldexp(1.0, std::max(std::ilogb(v), -126) - 11)) << values[i];
    }
  }
}

TEST(Numbers, NaNStays) {
  Buffer<float> x(
      std::vector<float>{std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0xFF800001U)});
  auto half = Buffer<std::uint16_t>::output(2), bf16 = Buffer<std::uint16_t>::output(2);
  auto tf32 = Buffer<std::uint32_t>::output(2);
  cases::to_bits(x.data(), half.data(), bf16.data(), tf32.data(), 2, nullptr);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::isnan(static_cast<float>(std::bit_cast<Half>(half.values()[i]))));
    EXPECT_TRUE(std::isnan(static_cast<float>(std::bit_cast<BFloat16>(bf16.values()[i]))));
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(tf32.values()[i])));
  }
}

}  // namespace
}  // namespace gyre::simt
