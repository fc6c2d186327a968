#include "layers/window.h"

#include <set>

#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(Windows, OrderGoesThroughWindowsRowByRow) {
  EXPECT_THAT(window_order({4, 2, 0}).to_vector(),
              ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  // One down and right; the last windows continue at the near edges.
  EXPECT_THAT(window_order({4, 2, 1}).to_vector(),
              ElementsAre(5, 6, 9, 10, 7, 4, 11, 8, 13, 14, 1, 2, 15, 12, 3, 0));
  EXPECT_THAT(window_order({2, 2, 0}).to_vector(), ElementsAre(0, 1, 2, 3));
}

TEST(Windows, InverseUndoesTheOrder) {
  for (const WindowConfig& config : {WindowConfig{6, 3, 1}, WindowConfig{8, 4, 2}, WindowConfig{5, 5, 0}}) {
    const Tensor order = window_order(config), inverse = inverse_order(order);
    for (std::int64_t i = 0; i < order.numel(); ++i)
      EXPECT_EQ(order.at({static_cast<std::int64_t>(inverse.at({i}))}), static_cast<double>(i));
  }
}

TEST(Windows, MaskHidesWhatMeetsAroundAnEdge) {
  for (const WindowConfig& config : {WindowConfig{4, 2, 1}, WindowConfig{6, 3, 1}, WindowConfig{8, 4, 2}}) {
    const Tensor order = window_order(config), mask = window_mask(config, DType::f64);
    const std::int64_t area = config.area();
    ASSERT_EQ(mask.shape(), (Shape{config.windows(), area, area}));
    const auto place = [&](std::int64_t w, std::int64_t i) {
      const auto token = static_cast<std::int64_t>(order.at({w * area + i}));
      return std::pair{token / config.grid, token % config.grid};
    };
    for (std::int64_t w = 0; w < config.windows(); ++w)
      for (std::int64_t i = 0; i < area; ++i)
        for (std::int64_t j = 0; j < area; ++j) {
          const auto [row, col] = place(w, i);
          const auto [other_row, other_col] = place(w, j);
          const bool near =
              std::abs(row - other_row) < config.window && std::abs(col - other_col) < config.window;
          EXPECT_EQ(mask.at({w, i, j}) == 0, near) << w << " " << i << " " << j;
        }
  }
  EXPECT_FALSE(window_mask({4, 2, 0}, DType::f32).defined());
}

TEST(Windows, RelativeIndexIsQueryMinusKey) {
  // Window 2: offsets -1, 0, 1 down and right, the centre is row 4.
  const Tensor index = relative_index(2).reshape({4, 4});
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(index.at({i, i}), 4);
  EXPECT_EQ(index.at({0, 1}), 3);  // the key lies to the right
  EXPECT_EQ(index.at({0, 2}), 1);  // below
  EXPECT_EQ(index.at({3, 0}), 8);
}

TEST(Windows, TurnsMoveOffsets) {
  // (down, right) = (a, b) goes to (-b, a) under a turn and to (a, -b) under a mirror.
  const std::int64_t window = 3, side = 5, places = side * side;
  const Tensor turned = turned_offsets(Group::get("d4"), window).reshape({8, places});
  const auto row = [&](std::int64_t a, std::int64_t b) { return (a + 2) * side + b + 2; };
  for (std::int64_t a = -2; a <= 2; ++a)
    for (std::int64_t b = -2; b <= 2; ++b) {
      EXPECT_EQ(turned.at({0, row(a, b)}), static_cast<double>(row(a, b)));
      EXPECT_EQ(turned.at({1, row(a, b)}), static_cast<double>(row(-b, a)));
      EXPECT_EQ(turned.at({4, row(a, b)}), static_cast<double>(row(a, -b)));
    }
}

TEST(Windows, ExactOnlyHalfAWindowApart) {
  const Group& c4 = Group::get("c4");
  EXPECT_TRUE((WindowConfig{8, 4, 2}).exact(c4));
  EXPECT_TRUE((WindowConfig{14, 7, 0}).exact(c4));
  EXPECT_FALSE((WindowConfig{14, 7, 3}).exact(c4));
  EXPECT_FALSE((WindowConfig{14, 7, 3}).exact(Group::get("mirror")));
  EXPECT_TRUE((WindowConfig{14, 7, 3}).exact(Group::get("c1")));
}

TEST(Windows, RefuseWhatDoesNotFit) {
  EXPECT_THAT(error_of<ShapeError>([] {
                window_order({10, 4, 0});
              }),
              HasSubstr("windows of 4 tokens do not tile a grid of 10x10"));
  EXPECT_THAT(error_of<ShapeError>([] {
                window_order({8, 4, 4});
              }),
              HasSubstr("a shift of 4 tokens is not below the window of 4"));
  EXPECT_THAT(error_of<ValueError>([] { turned_offsets(Group::get("c8"), 2); }), HasSubstr("c8"));
}

}  // namespace
}  // namespace gyre
