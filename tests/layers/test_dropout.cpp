#include "layers/dropout.h"

#include <numeric>
#include <set>

#include "autograd/ops/reduction.h"
#include "layers/stochastic.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

/// The output for ones [ids, shape...] in the scope (seed, epoch, ids).
std::vector<double> run(Module& layer, std::vector<std::int64_t> ids, std::int64_t width,
                        std::uint64_t seed = 1, std::uint64_t epoch = 0) {
  const StochasticScope scope(seed, epoch, ids);
  return layer(Variable(Tensor::ones({static_cast<std::int64_t>(ids.size()), width}))).data().to_vector();
}

std::vector<std::int64_t> ids_upto(std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  return ids;
}

TEST(DropPath, DropsWholeSamplesAtItsRateAndScalesTheRest) {
  DropPath layer(0.25, 3);
  const std::vector<double> y = run(layer, ids_upto(4000), 2);
  int dropped = 0;
  for (std::size_t i = 0; i < y.size(); i += 2) {
    EXPECT_EQ(y[i], y[i + 1]);
    EXPECT_TRUE(y[i] == 0 || std::abs(y[i] - 4.0 / 3) < 1e-6) << y[i];
    dropped += y[i] == 0;
  }
  EXPECT_NEAR(dropped / 4000.0, 0.25, 0.03);
}

TEST(DropPath, DependsOnTheSampleNotOnTheBatch) {
  DropPath layer(0.5, 3);
  const std::vector<double> whole = run(layer, {5, 9, 1000000007, 2, 5}, 1);
  EXPECT_EQ(whole[0], whole[4]);
  std::vector<double> parts = run(layer, {5, 9}, 1);
  for (const double v : run(layer, {1000000007, 2, 5}, 1)) parts.push_back(v);
  EXPECT_EQ(whole, parts);
}

TEST(DropPath, EverySeedEpochAndLayerDrawsAnew) {
  DropPath layer(0.5, 3), other(0.5, 4);
  const std::vector<std::int64_t> ids = ids_upto(64);
  const std::set<std::vector<double>> distinct{run(layer, ids, 1), run(layer, ids, 1, 2),
                                               run(layer, ids, 1, 1, 1), run(other, ids, 1)};
  EXPECT_EQ(distinct.size(), 4u);
  EXPECT_EQ(run(layer, ids, 1), run(layer, ids, 1));
}

TEST(DropPath, EvalAndRateZeroNeedNoScope) {
  DropPath off(0, 0), on(0.9, 0);
  on.eval();
  const Variable x(testing::random({3, 2}));
  EXPECT_EQ(off(x).data().to_vector(), x.data().to_vector());
  EXPECT_EQ(on(x).data().to_vector(), x.data().to_vector());
}

TEST(DropPath, TrainingWithoutScopeIsAnError) {
  DropPath layer(0.5, 0);
  EXPECT_THAT(error_of([&] {
                layer(Variable(Tensor::ones({2, 2})));
              }),
              HasSubstr("DropPath in training mode"));
  const std::vector<std::int64_t> ids{1, 2, 3};
  const StochasticScope scope(1, 0, ids);
  EXPECT_THAT(error_of<ShapeError>([&] {
                layer(Variable(Tensor::ones({2, 2})));
              }),
              HasSubstr("batch of 2 rows, but the StochasticScope names 3 samples"));
}

TEST(StochasticScope, NestsAndEnds) {
  const std::vector<std::int64_t> outer_ids{1}, inner_ids{2, 3};
  {
    const StochasticScope outer(1, 0, outer_ids);
    {
      const StochasticScope inner(1, 0, inner_ids);
      EXPECT_EQ(&StochasticScope::current("test", 2), &inner);
    }
    EXPECT_EQ(&StochasticScope::current("test", 1), &outer);
  }
  EXPECT_THROW(StochasticScope::current("test", 1), Error);
}

TEST(DropPath, RatesAreChecked) {
  EXPECT_THAT(error_of<ValueError>([] { DropPath(1.0, 0); }), HasSubstr("drop path rate 1 is not in [0, 1)"));
  EXPECT_THAT(error_of<ValueError>([] { Dropout(-0.5, 1, 0); }),
              HasSubstr("dropout rate -0.5 is not in [0, 1)"));
}

TEST(Dropout, DropsWholeOrbits) {
  Dropout layer(0.3, 4, 0);
  const std::vector<double> y = run(layer, ids_upto(50), 400);
  int dropped = 0;
  for (std::size_t i = 0; i < y.size(); i += 4) {
    for (std::size_t t = 1; t < 4; ++t) EXPECT_EQ(y[i], y[i + t]);
    EXPECT_TRUE(y[i] == 0 || std::abs(y[i] - 1 / 0.7) < 1e-6);
    dropped += y[i] == 0;
  }
  EXPECT_NEAR(dropped / 5000.0, 0.3, 0.03);
}

TEST(Dropout, DropsSingleChannelsForOrderOne) {
  Dropout layer(0.5, 1, 0);
  const std::vector<double> y = run(layer, ids_upto(10), 100);
  int changes = 0;
  for (std::size_t i = 1; i < y.size(); ++i) changes += y[i] != y[i - 1];
  EXPECT_NEAR(changes / 1000.0, 0.5, 0.08);
}

TEST(Dropout, GradientIsTheMask) {
  Dropout layer(0.5, 2, 0);
  const std::vector<std::int64_t> ids{0, 1};
  const StochasticScope scope(1, 0, ids);
  Variable x(Tensor::ones({2, 3, 4}), true);
  const Variable y = layer(x);
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector(), y.data().to_vector());
}

TEST(Dropout, TakesEmptyBatches) {
  Dropout layer(0.5, 2, 0);
  EXPECT_TRUE(run(layer, {}, 4).empty());
}

}  // namespace
}  // namespace gyre
