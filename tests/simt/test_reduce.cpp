#include <algorithm>
#include <random>

#include "tests/simt/cases.h"
#include "tests/simt/support.h"

namespace gyre::simt {
namespace {

TEST(Prim, BlockSum) {
  in_all_schedules([] {
    for (const std::size_t n : {std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{1000}}) {
      std::mt19937 random(n);
      std::vector<float> values(n);
      for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
      Buffer<float> x(values);
      auto y = Buffer<float>::output(n);
      cases::subtract_block_sum(x.data(), y.data(), static_cast<std::int64_t>(n), nullptr);
      const std::vector<float> got = y.values();
      for (std::size_t begin = 0; begin < n; begin += 256) {
        double sum = 0;
        for (std::size_t i = begin; i < std::min(begin + 256, n); ++i) sum += static_cast<double>(values[i]);
        for (std::size_t i = begin; i < std::min(begin + 256, n); ++i)
          ASSERT_NEAR(got[i], static_cast<double>(values[i]) - sum, 1e-5) << n << " " << i;
      }
    }
  });
}

}  // namespace
}  // namespace gyre::simt
