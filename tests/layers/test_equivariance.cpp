#include "layers/equivariance.h"

#include <limits>

#include "core/group_action.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using testing::random;

const Group& c4() { return Group::get("c4"); }

Tensor scaled(const Tensor& x, double factor) {
  Tensor y = x.clone();
  for (std::int64_t i = 0; i < y.numel(); ++i) y.mutable_data<double>()[i] *= factor;
  return y;
}

TEST(CheckEquivariance, PassesAnEquivariantFunctionExactly) {
  const auto twice = [](const Tensor& x) { return scaled(x, 2); };
  const std::vector<std::pair<Tensor, Meaning>> cases{
      {random({2, 3, 4, 4}), Meaning::image()},       {random({2, 3, 4, 4, 4}), Meaning::feature_map()},
      {random({2, 10, 8}), Meaning::tokens(3, 3, 1)}, {random({2, 8}), Meaning::vector()},
      {random({2, 8}), Meaning::invariant()},
  };
  for (const auto& [x, meaning] : cases) {
    const auto errors = check_equivariance(twice, c4(), x, meaning, meaning);
    ASSERT_EQ(errors.size(), 4u);
    for (int g = 0; g < 4; ++g) {
      EXPECT_EQ(errors[static_cast<std::size_t>(g)].element, g);
      EXPECT_EQ(errors[static_cast<std::size_t>(g)].nmae, 0);
      EXPECT_EQ(errors[static_cast<std::size_t>(g)].rel_l2, 0);
    }
  }
}

TEST(CheckEquivariance, SeesABrokenFunction) {
  // One extra percent on a single pixel.
  const auto broken = [](const Tensor& x) {
    Tensor y = x.clone();
    y.mutable_data<double>()[1] *= 1.01;
    return y;
  };
  const auto errors =
      check_equivariance(broken, c4(), random({1, 1, 4, 4}), Meaning::image(), Meaning::image());
  EXPECT_EQ(errors[0].nmae, 0);
  for (std::size_t g = 1; g < 4; ++g) EXPECT_GT(errors[g].nmae, 1e-5);
}

TEST(CheckEquivariance, ReportsTheMeasuresOfItsHeader) {
  // f(gx) = 3 everywhere but for g = 0, where it is 2: off by 1 against 2.
  int calls = 0;
  const auto f = [&](const Tensor& x) { return Tensor::full(x.shape(), calls++ < 2 ? 2 : 3, DType::f64); };
  const auto errors =
      check_equivariance(f, Group::get("c2"), random({4}), Meaning::invariant(), Meaning::invariant());
  EXPECT_EQ(errors[0].nmae, 0);
  EXPECT_DOUBLE_EQ(errors[1].nmae, 0.5);
  EXPECT_DOUBLE_EQ(errors[1].rel_l2, 0.5);
  EXPECT_DOUBLE_EQ(worst_nmae(errors), 0.5);
}

TEST(CheckEquivariance, ZeroAndNotANumberDoNotPass) {
  for (const double value : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
    const auto f = [&](const Tensor& x) { return Tensor::full(x.shape(), value, DType::f64); };
    const auto errors = check_equivariance(f, c4(), random({1, 4, 4}), Meaning::image(), Meaning::image());
    EXPECT_EQ(worst_nmae(errors), std::numeric_limits<double>::infinity());
  }
}

TEST(CheckEquivariance, RunsModulesInEvalModeAndRestoresTheirs) {
  Dropout layer(0.9, 4, 0);
  const Tensor x = random({3, 8});
  EXPECT_EQ(worst_nmae(check_equivariance(layer, c4(), x, Meaning::vector(), Meaning::vector())), 0);
  EXPECT_TRUE(layer.training());
  RandomStream stream = testing::init_stream();
  Linear misfit(4, 4, true, stream);
  EXPECT_THROW(check_equivariance(misfit, c4(), x.to(DType::f32), Meaning::vector(), Meaning::vector()),
               ShapeError);
  EXPECT_TRUE(misfit.training());
  EXPECT_TRUE(grad_enabled());
}

TEST(Act, ObeysTheMultiplicationTable) {
  for (const char* name : {"c2", "mirror", "c4", "d4"}) {
    const Group& group = Group::get(name);
    const int order = group.order();
    const std::vector<std::pair<Tensor, Meaning>> cases{
        {random({2, 3, 3}), Meaning::image()},
        {random({2, order, 3, 3}), Meaning::feature_map()},
        {random({2, 10, 2 * order}), Meaning::tokens(3, 3, 1)},
        {random({2, 2 * order}), Meaning::vector()},
    };
    for (const auto& [x, meaning] : cases)
      for (int a = 0; a < order; ++a)
        for (int b = 0; b < order; ++b)
          EXPECT_EQ(act(group, a, act(group, b, x, meaning), meaning).to_vector(),
                    act(group, group.mul(a, b), x, meaning).to_vector())
              << name << " " << a << " " << b;
  }
}

TEST(Act, TurnsAPlaneLikeRot90) {
  const Tensor x = random({3, 3});
  EXPECT_EQ(act(c4(), 1, x, Meaning::image()).to_vector(), testing::rotated(x.to_vector(), 3));
  EXPECT_EQ(act(Group::get("mirror"), 1, x, Meaning::image()).to_vector(),
            testing::mirrored(x.to_vector(), 3));
}

}  // namespace
}  // namespace gyre
