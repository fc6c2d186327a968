#include "kernels/cpu/flash_costs.h"

#include <gtest/gtest.h>

#include <utility>

#include "kernels/cpu/eq_weight_gradient.h"
#include "kernels/cpu/flash_kernels.h"

namespace gyre::kernels::cpu {
namespace {

template <class F>
void for_shapes(const F& f) {
  for (const int threads : {1, 2, 3, 4, 6, 8, 16})
    for (const std::int64_t rows : {1, 31, 500, 8192})
      for (const std::int64_t in : {1, 16, 129, 1024})
        for (std::int64_t out = 1; out <= 400; ++out)
          for (const auto& [order, products] : {std::pair{2, 2}, {4, 5}, {8, 11}})
            f(FlashShape{order, products, rows, in, out, threads});
}

TEST(FlashCosts, PartsOfAGridCoverAllChannelsAndAreNeverEmpty) {
  bool divided = false;
  for_shapes([&](const FlashShape& shape) {
    const FlashGrid grid(shape);
    const std::int64_t out = shape.channels_out;
    ASSERT_EQ(grid.columns, whole_panels(grid.columns));
    ASSERT_GE(grid.column_parts * grid.columns, out)
        << shape.threads << " threads, " << shape.rows << " rows";
    ASSERT_LT((grid.column_parts - 1) * grid.columns, out) << shape.threads << " threads, " << shape.rows;
    ASSERT_GE(grid.row_parts, 1);
    ASSERT_LE(grid.row_parts, shape.rows);
    ASSERT_LE(grid.parts(), shape.threads);
    divided |= grid.column_parts > 1;
  });
  EXPECT_TRUE(divided);
}

TEST(FlashCosts, MoreThreadsHelpOnlyWhereTheyHaveWork) {
  const FlashShape one{4, 5, 8192, 256, 256, 1};
  FlashShape two = one;
  two.threads = 2;
  EXPECT_LT(dense_sums_cost(two), 0.6 * dense_sums_cost(one));
  EXPECT_LT(flash_sums_cost(two), 0.6 * flash_sums_cost(one));
  // A single tile of the dense gradient, however many rows.
  const FlashShape tile{2, 2, 8192, 16, 10, 1};
  FlashShape shared = tile;
  shared.threads = 2;
  EXPECT_EQ(dense_sums_cost(shared), dense_sums_cost(tile));
  EXPECT_EQ(eq_weight_gradient_parts(2, 8192, 16, 10, 2), 1);
  EXPECT_EQ(eq_weight_gradient_parts(4, 8192, 256, 256, 2), 2);
  for_shapes([](const FlashShape& s) {
    const int parts = eq_weight_gradient_parts(s.order, s.rows, s.channels_in, s.channels_out, s.threads);
    ASSERT_GE(parts, 1);
    ASSERT_LE(parts, s.threads);
  });
}

}  // namespace
}  // namespace gyre::kernels::cpu
