#include "kernels/eq_choice.h"

#include <gtest/gtest.h>

#include "core/parallel.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/eq_linear.h"

namespace gyre::kernels {
namespace {

const Group& c4() { return Group::get("c4"); }

EqShape shape(std::int64_t rows, std::int64_t in, std::int64_t out, int threads = 1,
              EqDirection direction = EqDirection::forward) {
  return {c4(), direction, rows, in, out, threads};
}

/// Leaves the fixed rule behind.
class EqChoice : public testing::Test {
 protected:
  ~EqChoice() override { use_eq_table(nullptr); }
};

TEST_F(EqChoice, TheRuleTakesDenseWhereFlashCannotWin) {
  for (const EqDirection direction : {EqDirection::forward, EqDirection::backward}) {
    EXPECT_EQ(fixed_eq_choice(shape(4096, 1, 1, 2, direction), false), EqImplementation::naive);
    EXPECT_EQ(fixed_eq_choice(shape(4096, 1, 512, 2, direction), false), EqImplementation::naive);
    EXPECT_NE(fixed_eq_choice(shape(4096, 1, 1, 2, direction), true), EqImplementation::naive);
    EXPECT_NE(fixed_eq_choice(shape(4096, 64, 64, 2, direction), false), EqImplementation::naive);
    EXPECT_NE(fixed_eq_choice(shape(4096, 512, 512, 1, direction), false), EqImplementation::naive);
    const EqShape single{Group::get("c1"), direction, 4096, 512, 512, 1};
    EXPECT_EQ(fixed_eq_choice(single, false), EqImplementation::naive);
    EXPECT_NE(fixed_eq_choice(single, true), EqImplementation::naive);
  }
}

/// Calls of a microsecond, whose transforms cost less than the overhead of the library.
TEST_F(EqChoice, TheRuleTakesFlashForTinyCalls) {
  for (const EqDirection direction : {EqDirection::forward, EqDirection::backward})
    for (const std::int64_t rows : {1, 12, 28})
      EXPECT_NE(fixed_eq_choice(shape(rows, 4, 6, 1, direction), false), EqImplementation::naive) << rows;
}

TEST_F(EqChoice, CellsReachFromHalfToTwiceAPowerOfFour) {
  EqTable table("a", 1);
  table.set(shape(16, 64, 4), {EqImplementation::packed, EqImplementation::packed});
  EXPECT_EQ(table.size(), 1u);
  for (const std::int64_t rows : {8, 16, 31}) EXPECT_TRUE(table.find(shape(rows, 64, 4))) << rows;
  for (const std::int64_t rows : {7, 32}) EXPECT_FALSE(table.find(shape(rows, 64, 4))) << rows;
  for (const std::int64_t in : {32, 127}) EXPECT_TRUE(table.find(shape(16, in, 4))) << in;
  for (const std::int64_t in : {31, 128}) EXPECT_FALSE(table.find(shape(16, in, 4))) << in;
  for (const std::int64_t out : {2, 7}) EXPECT_TRUE(table.find(shape(16, 64, out))) << out;
  for (const std::int64_t out : {1, 8}) EXPECT_FALSE(table.find(shape(16, 64, out))) << out;
  EXPECT_FALSE(table.find(shape(16, 64, 4, 2)));
  EXPECT_FALSE(table.find(shape(16, 64, 4, 1, EqDirection::backward)));
  EXPECT_FALSE(table.find({Group::get("c2"), EqDirection::forward, 16, 64, 4, 1}));
}

TEST_F(EqChoice, ATableReplacesTheRule) {
  set_num_threads(1);
  const auto kernel = [](EqBackend backend, DType dtype = DType::f32) {
    return eq_linear_kernel(c4(), {backend}, dtype, 100, 20, 20);
  };
  const std::string fused = fmt::format("flash5_{}", cpu::flash_target());
  auto table = std::make_shared<EqTable>("12345678", 1);
  table->set(shape(100, 20, 20), {EqImplementation::naive, EqImplementation::packed});
  EXPECT_EQ(eq_table_id(), "");
  use_eq_table(table);
  EXPECT_EQ(eq_table_id(), "12345678");
  EXPECT_EQ(kernel(EqBackend::automatic), fmt::format("naive_{}", cpu::dense_library()));
  EXPECT_EQ(kernel(EqBackend::flash), fmt::format("flash5_{}", cpu::dense_library()));
  EXPECT_EQ(kernel(EqBackend::fused), fused);
  EXPECT_EQ(kernel(EqBackend::packed), fmt::format("flash5_{}", cpu::dense_library()));
  EXPECT_EQ(kernel(EqBackend::automatic, DType::f64), "flash5_eigen");
  EXPECT_EQ(eq_linear_kernel(c4(), {}, DType::f32, 100, 20, 20, EqDirection::backward), [&] {
    use_eq_table(nullptr);
    return eq_linear_kernel(c4(), {}, DType::f32, 100, 20, 20, EqDirection::backward);
  }());
}

}  // namespace
}  // namespace gyre::kernels
