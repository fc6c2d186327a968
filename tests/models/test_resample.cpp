#include "models/resample.h"

#include "core/group_action.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using testing::error_of;
using testing::random;
using testing::rel_l2;

/// f(row, col) at the centres of side × side cells of the unit square.
template <class F>
Tensor sampled(std::int64_t side, const F& f) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j)
      values.push_back(f((static_cast<double>(i) + 0.5) / static_cast<double>(side),
                         (static_cast<double>(j) + 0.5) / static_cast<double>(side)));
  return Tensor::from(values, {side, side, 1});
}

TEST(Resample, SameSideIsTheIdentity) {
  const Tensor table = random({5, 5, 3});
  EXPECT_LT(rel_l2(resample_square(table, 5), table), 1e-15);
}

TEST(Resample, QuadraticsAreReproducedAwayFromTheBorder) {
  const auto f = [](double y, double x) { return 1 + 2 * x - 3 * y + x * x - 0.5 * x * y; };
  const Tensor large = resample_square(sampled(8, f), 24), expected = sampled(24, f);
  for (std::int64_t i = 6; i < 18; ++i)
    for (std::int64_t j = 6; j < 18; ++j) EXPECT_NEAR(large.at({i, j, 0}), expected.at({i, j, 0}), 1e-12);
}

TEST(Resample, ByHandFromTwoToFour) {
  // Cell centres of the new grid lie at -1/4, 1/4, 3/4, 5/4 of the old; outside the border repeats.
  const Tensor table = Tensor::from({0.0, 1.0, 0.0, 1.0}, {2, 2, 1});
  const Tensor large = resample_square(table, 4);
  const auto cubic = [](double x) {
    x = std::abs(x);
    return x < 1 ? 1.5 * x * x * x - 2.5 * x * x + 1 : -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2;
  };
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(large.at({i, 0, 0}), cubic(1.25), 1e-15);
    EXPECT_NEAR(large.at({i, 1, 0}), cubic(0.75) + cubic(1.75), 1e-15);
    EXPECT_NEAR(large.at({i, 2, 0}), 1 - cubic(0.75) - cubic(1.75), 1e-15);
  }
}

TEST(Resample, ShrinkingTakesInEveryCell) {
  for (std::int64_t row = 0; row < 8; ++row) {
    Tensor table = Tensor::zeros({8, 8, 1}, DType::f64);
    table.slice(0, row, row + 1).fill_(1);
    double largest = 0;
    for (const double value : resample_square(table, 2).to_vector()) largest = std::max(largest, value);
    EXPECT_GT(largest, 0.01) << row;
  }
}

TEST(Resample, CommutesWithTurnsAndMirrorsAndKeepsTheType) {
  const Group& d4 = Group::get("d4");
  const Tensor table = random({6, 6, 2}, 1, DType::f32);
  const auto turned = [&](int g, const Tensor& x) {
    return act_on_image(d4, g, x.permute({2, 0, 1})).permute({1, 2, 0});
  };
  for (const std::int64_t side : {1, 3, 4, 9, 14}) {
    const Tensor reference = resample_square(table, side);
    EXPECT_EQ(reference.dtype(), DType::f32);
    for (int g = 0; g < 8; ++g)
      EXPECT_LT(rel_l2(resample_square(turned(g, table), side), turned(g, reference)), 1e-6) << side << g;
  }
}

TEST(Resample, RefusesWhatIsNoSquare) {
  EXPECT_EQ(error_of<ShapeError>([] {
              resample_square(Tensor::zeros({3, 4, 2}), 5);
            }),
            "resample_square takes [side, side, channels], not [3, 4, 2] to a side of 5");
  error_of<ShapeError>([] { resample_square(Tensor::zeros({3, 3}), 5); });
  error_of<ShapeError>([] { resample_square(Tensor::zeros({3, 3, 2}), 0); });
}

}  // namespace
}  // namespace gyre
