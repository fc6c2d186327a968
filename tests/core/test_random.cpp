#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"

namespace gyre {
namespace {

using Words = std::array<std::uint32_t, 4>;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double chi_square(const std::vector<int>& counts, int draws) {
  const double expected = static_cast<double>(draws) / static_cast<double>(counts.size());
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(Philox, KnownAnswers) {
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsPhiloxOfItsAddress) {
  const std::uint64_t seed = 0x0123456789abcdef, a = 0xfedcba9876543210, b = 0x1122334455667788;
  Words id = philox({0x76543210, 0xfedcba98, 0x55667788, 0x11223344}, {0x89abcdef, 0x01234567});
  id = philox(id, {static_cast<std::uint32_t>(Purpose::dropout), 0x67797265});
  RandomStream stream(seed, Purpose::dropout, a, b);
  for (std::uint32_t block = 0; block < 3; ++block)
    for (const std::uint32_t word : philox({block, 0, id[0], id[1]}, {id[2], id[3]}))
      EXPECT_EQ(stream.bits(), word);
}

TEST(RandomStream, EveryPartOfTheAddressMatters) {
  const std::vector<std::uint64_t> values = {0, 1, 2, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 63};
  std::set<std::uint64_t> seen;
  std::size_t streams = 0;
  for (const std::uint64_t seed : values) {
    for (std::uint32_t purpose = 0; purpose <= static_cast<std::uint32_t>(Purpose::test); ++purpose) {
      for (const std::uint64_t a : values) {
        for (const std::uint64_t b : values) {
          RandomStream stream(seed, static_cast<Purpose>(purpose), a, b);
          RandomStream again(seed, static_cast<Purpose>(purpose), a, b);
          const std::uint64_t high = stream.bits();
          const std::uint64_t value = high << 32 | stream.bits();
          EXPECT_EQ(high, again.bits());
          seen.insert(value);
          ++streams;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), streams);  // 64-bit draws: a chance collision has odds of 1e-12
}

TEST(RandomStream, NeighbouringStreamsAreUncorrelated) {
  const int n = 20000;
  double sum = 0, products = 0, previous = 0;
  for (int i = 0; i < n; ++i) {
    const double x = RandomStream(7, Purpose::test, static_cast<std::uint64_t>(i)).uniform() - 0.5;
    sum += x;
    products += x * previous;
    previous = x;
  }
  EXPECT_LT(std::abs(sum / n), 6 * std::sqrt(1.0 / 12 / n));
  EXPECT_LT(std::abs(products / n), 6 * (1.0 / 12) / std::sqrt(n));
}

TEST(RandomStream, BitsAreBalanced) {
  RandomStream stream(1, Purpose::test);
  const int n = 40000;
  std::array<int, 32> ones{};
  for (int i = 0; i < n; ++i) {
    const std::uint32_t word = stream.bits();
    for (unsigned bit = 0; bit < 32; ++bit) ones[bit] += static_cast<int>(word >> bit & 1);
  }
  for (const int count : ones) EXPECT_NEAR(static_cast<double>(count) / n, 0.5, 0.015);
}

TEST(RandomStream, UniformFillsTheUnitInterval) {
  RandomStream stream(2, Purpose::test);
  const int n = 100000;
  std::vector<int> counts(100);
  bool low_bits = false;
  for (int i = 0; i < n; ++i) {
    const double x = stream.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    ++counts[static_cast<std::size_t>(x * 100)];
    low_bits = low_bits || std::fmod(x * 0x1p53, 2) == 1;
  }
  EXPECT_TRUE(low_bits);  // all 53 bits are drawn
  EXPECT_GT(chi_square(counts, n), 40);
  EXPECT_LT(chi_square(counts, n), 180);
}

TEST(RandomStream, UniformKeepsItsBounds) {
  RandomStream stream(3, Purpose::test);
  const double next = std::nextafter(1.0, 2.0);
  double least = 9, most = -9;
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(stream.uniform(1, next), 1);  // rounding would reach the open end half of the time
    const double x = stream.uniform(-3, 5);
    least = std::min(least, x);
    most = std::max(most, x);
  }
  EXPECT_GE(least, -3);
  EXPECT_LT(least, -2.9);
  EXPECT_LT(most, 5);
  EXPECT_GT(most, 4.9);
  EXPECT_EQ(stream.uniform(2, 2), 2);
  EXPECT_EQ(error_of([&] { stream.uniform(2, 1); }), "uniform range [2, 1) is not a finite interval");
  EXPECT_EQ(error_of([&] { stream.uniform(0, std::nan("")); }),
            "uniform range [0, nan) is not a finite interval");
}

TEST(RandomStream, BelowIsUnbiased) {
  RandomStream stream(4, Purpose::test);
  const int n = 70000;
  std::vector<int> counts(7);
  for (int i = 0; i < n; ++i) ++counts.at(stream.below(7));
  EXPECT_LT(chi_square(counts, n), 30);
  // A plain remainder would put half of the draws into the lowest third.
  const std::uint64_t huge = 3ULL << 62;
  int lowest = 0;
  for (int i = 0; i < 30000; ++i) {
    const std::uint64_t draw = stream.below(huge);
    ASSERT_LT(draw, huge);
    lowest += draw < huge / 3;
  }
  EXPECT_NEAR(lowest / 30000.0, 1.0 / 3, 0.02);
  EXPECT_EQ(stream.below(1), 0u);
  EXPECT_EQ(error_of([&] { stream.below(0); }), "below(0) has no value to draw");
}

TEST(RandomStream, NormalHasTheRightMoments) {
  RandomStream stream(5, Purpose::test);
  const int n = 100000;
  double sum = 0, square = 0, fourth = 0, products = 0, previous = 0;
  int inside = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal();
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    products += x * previous;
    previous = x;
    inside += std::abs(x) < 1;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(square / n, 1, 0.03);
  EXPECT_NEAR(fourth / n, 3, 0.25);
  EXPECT_NEAR(products / n, 0, 0.02);
  EXPECT_NEAR(static_cast<double>(inside) / n, 0.6827, 0.01);
}

TEST(RandomStream, TruncatedNormalStopsAtTwoDeviations) {
  RandomStream stream(6, Purpose::test);
  const int n = 50000;
  double square = 0, most = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.truncated_normal(0.02);
    most = std::max(most, std::abs(x));
    square += x * x;
  }
  EXPECT_LE(most, 0.04);
  EXPECT_GT(most, 0.0396);
  EXPECT_NEAR(square / n / 0.0004, 0.7737, 0.02);  // the variance of a normal cut off at ±2
}

TEST(RandomStream, PermutationsAreEquallyLikely) {
  RandomStream stream(8, Purpose::test);
  std::map<std::vector<std::int64_t>, int> counts;
  for (int i = 0; i < 24000; ++i) ++counts[stream.permutation(4)];
  ASSERT_EQ(counts.size(), 24u);
  std::vector<int> values;
  for (const auto& [order, count] : counts) values.push_back(count);
  EXPECT_LT(chi_square(values, 24000), 60);

  std::vector<std::int64_t> order = stream.permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_THAT(stream.permutation(0), testing::IsEmpty());
  EXPECT_THAT(stream.permutation(1), testing::ElementsAre(0));
  EXPECT_EQ(error_of([&] { stream.permutation(-1); }), "permutation of -1 elements");
}

TEST(RandomTensor, DrawsInRowMajorOrderAlikeForBothTypes) {
  const Shape shape{3, 4};
  for (const bool normal : {false, true}) {
    const auto draw = [&](DType dtype) {
      RandomStream stream(9, Purpose::test);
      return normal ? random_normal(shape, 2, stream, dtype) : random_uniform(shape, -1, 1, stream, dtype);
    };
    const Tensor wide = draw(DType::f64), narrow = draw(DType::f32);
    EXPECT_EQ(wide.shape(), shape);
    EXPECT_EQ(narrow.dtype(), DType::f32);
    RandomStream stream(9, Purpose::test);
    for (int i = 0; i < 12; ++i) {
      const double expected = normal ? 2 * stream.normal() : stream.uniform(-1, 1);
      EXPECT_EQ(wide.at({i / 4, i % 4}), expected);
      EXPECT_EQ(narrow.at({i / 4, i % 4}), static_cast<double>(static_cast<float>(expected)));
    }
  }
}

TEST(RandomTensor, KeepsTheOpenEndAfterRounding) {
  RandomStream stream(10, Purpose::test);
  const Tensor x = random_uniform({1000}, 1 - 1e-9, 1, stream);  // every double there rounds to 1.0f
  for (const double value : x.to_vector()) ASSERT_LT(value, 1);
  for (const double value : random_uniform({5}, 3, 3, stream).to_vector()) EXPECT_EQ(value, 3);
}

TEST(RandomTensor, TruncatesEmptiesAndRefusesOtherTypes) {
  RandomStream stream(11, Purpose::test);
  const Tensor x = random_truncated_normal({40, 50}, 0.5, stream, DType::f64);
  for (const double value : x.to_vector()) ASSERT_LE(std::abs(value), 1);
  EXPECT_EQ(random_normal({0, 3}, 1, stream).numel(), 0);
  EXPECT_EQ(error_of([&] { random_uniform({2}, 0, 1, stream, DType::i64); }),
            "random_uniform takes f32 or f64, not i64");
}

}  // namespace
}  // namespace gyre
