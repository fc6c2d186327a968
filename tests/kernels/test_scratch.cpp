#include "kernels/cpu/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t too_large = 1 << 20;  // floats: four megabytes

TEST(ThreadScratch, ComesBackToItsThread) {
  const float* first = nullptr;
  {
    const ThreadScratch<float> scratch(1000);
    first = scratch.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % huge_page, 0u);
  }
  { const ThreadScratch<float> large(too_large); }
  const ThreadScratch<float> again(500);
  EXPECT_EQ(again.data(), first);
  const float* other = nullptr;
  std::thread([&] { other = ThreadScratch<float>(500).data(); }).join();
  EXPECT_NE(other, first);
}

TEST(ThreadScratch, SeveralAtOnceAreApart) {
  const ThreadScratch<float> a(1000), b(1000), large(too_large);
  std::fill_n(a.data(), 1000, 1.0f);
  std::fill_n(b.data(), 1000, 2.0f);
  std::fill_n(large.data(), too_large, 3.0f);
  EXPECT_EQ(std::count(a.data(), a.data() + 1000, 1.0f), 1000);
  EXPECT_EQ(std::count(b.data(), b.data() + 1000, 2.0f), 1000);
}

TEST(ThreadScratch, TakesAnySizeAndMayBeEmpty) {
  for (std::int64_t count : {1, 100, 10'000, 200'000, 524'288, 524'289, 0}) {
    const ThreadScratch<float> scratch(count);
    ASSERT_EQ(scratch.data() == nullptr, count == 0) << count;
    std::fill_n(scratch.data(), count, 1.0f);
  }
}

}  // namespace
}  // namespace gyre::kernels::cpu
