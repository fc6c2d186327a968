#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/simt/cases.h"
#include "tests/simt/support.h"

namespace gyre::simt {
namespace {

using cases::Exchange;

template <class T>
std::vector<T> run(Exchange what, const std::vector<T>& values, const std::vector<int>& arguments) {
  Buffer<T> x(values);
  Buffer<int> argument(arguments);
  auto y = Buffer<T>::output(64);
  cases::exchange(what, x.data(), argument.data(), y.data(), nullptr);
  return y.values();
}

template <class T>
class Shuffle : public testing::Test {};
using Types = testing::Types<int, unsigned, long long, float, double>;
TYPED_TEST_SUITE(Shuffle, Types);

TYPED_TEST(Shuffle, MovesValuesWithinTheWarp) {
  in_all_schedules([] {
    const std::vector<TypeParam> x = random<TypeParam>(64, 5, -1e9, 1e9);
    std::vector<int> source(64), delta(64);
    for (int i = 0; i < 64; ++i) source[i] = (i * 7 + 3) % 40;  // beyond 31: modulo 32
    for (int i = 0; i < 64; ++i) delta[i] = i < 32 ? 5 : 31;
    const auto any = run(Exchange::shfl, x, source), down = run(Exchange::shfl_down, x, delta),
               up = run(Exchange::shfl_up, x, delta), crossed = run(Exchange::shfl_xor, x, delta);
    for (int i = 0; i < 64; ++i) {
      const int warp = i / 32 * 32, lane = i % 32;
      EXPECT_EQ(any[i], x[warp + source[i] % 32]);
      EXPECT_EQ(down[i], x[lane + delta[i] < 32 ? i + delta[i] : i]);
      EXPECT_EQ(up[i], x[lane - delta[i] >= 0 ? i - delta[i] : i]);
      EXPECT_EQ(crossed[i], x[warp + (lane ^ delta[i])]);
    }
  });
}

TYPED_TEST(Shuffle, ReducesTheWarp) {
  in_all_schedules([] {
    const std::vector<TypeParam> x = random<TypeParam>(64, 6, 0, 1000);
    const auto sum = run(Exchange::warp_sum, x, std::vector<int>(64)),
               maximum = run(Exchange::warp_max, x, std::vector<int>(64));
    for (int i = 0; i < 64; ++i) {
      const auto begin = x.begin() + i / 32 * 32;
      double wanted = 0;
      for (int j = 0; j < 32; ++j) wanted += static_cast<double>(begin[j]);
      EXPECT_NEAR(static_cast<double>(sum[i]), wanted, 1e-6 * wanted);
      EXPECT_EQ(sum[i], sum[i / 32 * 32]);
      EXPECT_EQ(maximum[i], *std::max_element(begin, begin + 32));
    }
  });
}

// Pairs of lanes 16, 8, 4, 2 and 1 apart, in this order.
TEST(Shuffle, SumsInAFixedOrder) {
  std::vector<float> tree = random<float>(64, 7);
  const auto sum = run(Exchange::warp_sum, tree, std::vector<int>(64));
  for (int apart = 16; apart > 0; apart /= 2)
    for (int i = 0; i < apart; ++i) tree[i] += tree[i + apart];
  EXPECT_EQ(sum[0], tree[0]);
  EXPECT_EQ(sum[31], tree[0]);
}

TEST(Shuffle, MaximumKeepsNaN) {
  std::vector<float> x = random<float>(64, 8);
  x[9] = std::numeric_limits<float>::quiet_NaN();
  const auto maximum = run(Exchange::warp_max, x, std::vector<int>(64));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(std::isnan(maximum[i]), i < 32) << i;
}

TEST(Ballot, HasABitPerLane) {
  in_all_schedules([] {
    const std::vector<int> conditions = random<int>(64, 9, 0, 2);
    Buffer<int> condition(conditions);
    auto bits = Buffer<unsigned>::output(64);
    cases::ballot(condition.data(), bits.data(), nullptr);
    const std::vector<unsigned> got = bits.values();
    for (int i = 0; i < 64; ++i)
      for (int lane = 0; lane < 32; ++lane)
        EXPECT_EQ(got[i] >> lane & 1U, static_cast<unsigned>(conditions[i / 32 * 32 + lane]));
  });
}

template <class T>
class BlockReduce : public testing::Test {};
using Sums = testing::Types<int, float, double>;
TYPED_TEST_SUITE(BlockReduce, Sums);

TYPED_TEST(BlockReduce, SumAndMaximum) {
  in_all_schedules([] {
    for (const int block : {32, 96, 1024}) {
      const std::vector<TypeParam> values =
          random<TypeParam>(static_cast<std::size_t>(4 * block), 10, -1000, -1);
      Buffer<TypeParam> x(values);
      auto y = Buffer<TypeParam>::output(values.size() * 2);
      cases::block_sum_max(x.data(), block, y.data(), nullptr);
      const std::vector<TypeParam> got = y.values();
      for (int b = 0; b < 4; ++b) {
        const auto begin = values.begin() + b * block;
        double wanted = 0;
        for (int i = 0; i < block; ++i) wanted += static_cast<double>(begin[i]);
        for (int i = b * block; i < (b + 1) * block; ++i) {
          ASSERT_NEAR(static_cast<double>(got[2 * i]), wanted, -1e-6 * wanted) << block;
          ASSERT_EQ(got[2 * i + 1], *std::max_element(begin, begin + block)) << block;
        }
      }
    }
  });
}

}  // namespace
}  // namespace gyre::simt
