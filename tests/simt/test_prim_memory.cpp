#include <gmock/gmock.h>
#include <algorithm>

#include "core/error.h"
#include "tests/simt/cases.h"
#include "tests/simt/support.h"

namespace gyre::simt {
namespace {

using testing::HasSubstr;

TEST(Indices, CoverTheGrid) {
  in_all_schedules([] {
    auto out = Buffer<unsigned>::output(3 * 4 * 2 * 64 * 8);
    cases::indices(3, 4, 2, 64, out.data(), nullptr);
    const std::vector<unsigned> got = out.values();
    for (unsigned i = 0; i < 3 * 4 * 2 * 64; ++i) {
      const unsigned block = i / 64;
      const std::vector<unsigned> mine(got.begin() + i * 8, got.begin() + i * 8 + 8),
          wanted{block % 3, block / 3 % 4, block / 12, i % 64, 64, 3, 4, 2};
      ASSERT_EQ(mine, wanted) << i;
    }
  });
}

TEST(Launch, EmptyGridsAndErrors) {
  cases::indices(0, 4, 2, 64, nullptr, nullptr);
  cases::indices(1, 1, 0, 64, nullptr, nullptr);
  const auto message = [](std::int64_t x, std::int64_t y, int block) {
    try {
      cases::indices(x, y, 1, block, nullptr, nullptr);
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message(1, 1, 48), HasSubstr("kernel indices_kernel (cases.cu:"));
  EXPECT_THAT(message(1, 1, 48), HasSubstr("the block is not 32, 64, … 1024 threads"));
  EXPECT_THAT(message(1, 1, 2048), HasSubstr("the block is not"));
  EXPECT_THAT(message(1, 1, 0), HasSubstr("the block is not"));
  EXPECT_THAT(message(std::int64_t{1} << 31, 1, 32), HasSubstr("the grid exceeds"));
  EXPECT_THAT(message(1, 65536, 32), HasSubstr("the grid exceeds"));
  EXPECT_THAT(message(-1, 1, 32), HasSubstr("the grid exceeds"));
}

template <class T>
class Access128 : public testing::Test {};
using Types = testing::Types<float, std::uint16_t, double>;
TYPED_TEST_SUITE(Access128, Types);

TYPED_TEST(Access128, Copies) {
  in_all_schedules([] {
    const std::vector<TypeParam> values = random<TypeParam>(16 / sizeof(TypeParam) * 100, 11, 0, 1000);
    Buffer<TypeParam> x(values);
    auto y = Buffer<TypeParam>::output(values.size());
    cases::copy128(x.data(), y.data(), static_cast<std::int64_t>(values.size()), nullptr);
    EXPECT_EQ(y.values(), values);
  });
}

#ifndef GYRE_TEST_GPU
TYPED_TEST(Access128, NeedsAlignment) {
  Buffer<TypeParam> x(std::vector<TypeParam>(64), 1);
  auto y = Buffer<TypeParam>::output(64);
  try {
    cases::copy128(x.data(), y.data(), 64, nullptr);
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.rule(), Rule::misaligned);
    EXPECT_THAT(fault.what(), HasSubstr("copy128_kernel<T>: misaligned access: thread 0 of block (0, 0, 0)"));
    EXPECT_THAT(fault.what(), HasSubstr("at cases.cu:"));
  }
}
#endif

TEST(CpAsync, CarriesTilesThroughTwoStages) {
  in_all_schedules([] {
    for (const bool wide : {false, true})
      for (const std::size_t valid : {1, 63, 64, 333, 512}) {
        const std::size_t chunk = wide ? 4 : 1;
        const std::vector<float> values = random<float>(valid * chunk, 12);
        Buffer<float> x(values);
        auto y = Buffer<float>::output(2 * 4 * 64 * chunk);
        cases::staged_copy(wide, x.data(), y.data(), static_cast<std::int64_t>(valid), nullptr);
        std::vector<float> wanted = values;
        wanted.resize(y.size());
        EXPECT_EQ(y.values(), wanted) << valid;
      }
  });
}

template <class T>
class AtomicAdd : public testing::Test {};
using Sums = testing::Types<int, unsigned, unsigned long long, float, double>;
TYPED_TEST_SUITE(AtomicAdd, Sums);

TYPED_TEST(AtomicAdd, LosesNothing) {
  in_all_schedules([] {
    constexpr std::size_t n = 300, bins = 7;
    const std::vector<int> bin_of = random<int>(n, 13, 0, bins);
    std::vector<TypeParam> amounts(n);
    const std::vector<int> whole = random<int>(n, 14, 1, 100);
    std::transform(whole.begin(), whole.end(), amounts.begin(),
                   [](int v) { return static_cast<TypeParam>(v); });
    Buffer<int> bin(bin_of);
    Buffer<TypeParam> amount(amounts), count(std::vector<TypeParam>(bins, TypeParam{}));
    auto old = Buffer<TypeParam>::output(n);
    cases::histogram(bin.data(), amount.data(), count.data(), old.data(), n, nullptr);
    // What stood there and what was added form a chain from 0 to the sum.
    const std::vector<TypeParam> got = count.values(), before = old.values();
    for (int b = 0; b < static_cast<int>(bins); ++b) {
      std::vector<std::pair<TypeParam, TypeParam>> steps;
      for (std::size_t i = 0; i < n; ++i)
        if (bin_of[i] == b) steps.emplace_back(before[i], before[i] + amounts[i]);
      std::sort(steps.begin(), steps.end());
      TypeParam at{};
      for (const auto& [from, to] : steps) {
        EXPECT_EQ(from, at);
        at = to;
      }
      EXPECT_EQ(got[static_cast<std::size_t>(b)], at);
    }
  });
}

}  // namespace
}  // namespace gyre::simt
