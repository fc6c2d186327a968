#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/onednn/primitives.h"

namespace gyre::kernels::cpu {
namespace {

std::vector<float> random_floats(std::size_t count) {
  RandomStream stream(7, Purpose::test, 1);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(stream.normal());
  return values;
}

TEST(OneDnn, TallTransposedProductsTakeSgemm) {
  EXPECT_EQ(gemm_f32_kernel({1, 64, 64, 2048, 0, 1, 64, 0, 64, 1, 0, 64}), "sgemm");
  EXPECT_NE(gemm_f32_kernel({1, 64, 64, 512, 0, 1, 64, 0, 64, 1, 0, 64}), "sgemm");
  EXPECT_NE(gemm_f32_kernel({1, 64, 64, 2048, 0, 2048, 1, 0, 64, 1, 0, 64}), "sgemm");
}

TEST(OneDnn, CacheOfPrimitivesIsBounded) {
  const std::vector<float> values = random_floats(2048);
  std::vector<float> c(2048);
  for (std::int64_t m = 1; m <= static_cast<std::int64_t>(max_cached_gemm_primitives()) + 50; ++m) {
    gemm_f32({1, m, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1}, values.data(), values.data() + 5, c.data());
    ASSERT_LE(cached_gemm_primitives(), max_cached_gemm_primitives());
    ASSERT_EQ(c[static_cast<std::size_t>(m - 1)], values[static_cast<std::size_t>(m - 1)] * values[5]);
  }
  EXPECT_GT(cached_gemm_primitives(), 0U);
}

}  // namespace
}  // namespace gyre::kernels::cpu
