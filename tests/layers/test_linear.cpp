#include "layers/linear.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "layers/activation.h"
#include "layers/layer_norm.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::Each;
using testing::init_stream;
using testing::random;

TEST(Linear, IsTheMatrixProduct) {
  RandomStream stream = init_stream();
  Linear layer(5, 3, true, stream);
  layer.to(DType::f64);
  Tensor bias = layer.state().at("bias");
  bias.copy_(random({3}, 1));
  const Tensor w = layer.state().at("weight"), x = random({2, 4, 5}, 2);
  const Tensor y = layer(Variable(x)).data();
  ASSERT_EQ(y.shape(), (Shape{2, 4, 3}));
  for (int b = 0; b < 2; ++b) {
    for (int n = 0; n < 4; ++n) {
      for (int m = 0; m < 3; ++m) {
        double expected = bias.at({m});
        for (int k = 0; k < 5; ++k) expected += x.at({b, n, k}) * w.at({m, k});
        EXPECT_NEAR(y.at({b, n, m}), expected, 1e-13);
      }
    }
  }
}

TEST(Linear, StartsAsToldAndRepeatably) {
  RandomStream a = init_stream(), b = init_stream(), c = init_stream(1);
  Linear first(64, 64, true, a), same(64, 64, true, b), other(64, 64, true, c, Initialiser::uniform(0.5));
  EXPECT_EQ(first.state().at("weight").to_vector(), same.state().at("weight").to_vector());
  EXPECT_THAT(first.state().at("bias").to_vector(), Each(0));
  double largest = 0, square = 0;
  for (const double v : first.state().at("weight").to_vector()) {
    largest = std::max(largest, std::abs(v));
    square += v * v;
  }
  EXPECT_LE(largest, 0.04);
  EXPECT_GT(largest, 0.035);
  EXPECT_NEAR(std::sqrt(square / 4096), 0.0176, 0.001);  // truncation at 2 std leaves 0.88 std
  largest = 0;
  for (const double v : other.state().at("weight").to_vector()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.49);
}

TEST(Linear, WithoutBiasHasOneParameter) {
  RandomStream stream = init_stream();
  Linear layer(3, 2, false, stream);
  EXPECT_EQ(layer.parameter_count(), 6);
  EXPECT_EQ(layer.describe(), "3 to 2, no bias");
}

TEST(LayerNorm, NormalisesTheWholeWidth) {
  LayerNorm plain(8);
  EqLayerNorm tied(Group::get("c4"), 2);
  EXPECT_EQ(plain.parameter_count(), 16);
  EXPECT_EQ(tied.parameter_count(), 4);
  plain.to(DType::f64);
  tied.to(DType::f64);
  Tensor gain = tied.state().at("weight"), bias = tied.state().at("bias");
  gain.copy_(Tensor::from<double>({2, 3}, {2}));
  bias.copy_(Tensor::from<double>({-1, 4}, {2}));
  const Tensor x = random({3, 8});
  const Tensor y = plain(Variable(x)).data(), z = tied(Variable(x)).data();
  for (int n = 0; n < 3; ++n) {
    double mean = 0, variance = 0;
    for (int i = 0; i < 8; ++i) mean += x.at({n, i}) / 8;
    for (int i = 0; i < 8; ++i) variance += (x.at({n, i}) - mean) * (x.at({n, i}) - mean) / 8;
    for (int i = 0; i < 8; ++i) {
      const double normal = (x.at({n, i}) - mean) / std::sqrt(variance + 1e-6);
      EXPECT_NEAR(y.at({n, i}), normal, 1e-12);
      EXPECT_NEAR(z.at({n, i}), i < 4 ? 2 * normal - 1 : 3 * normal + 4, 1e-12);
    }
  }
}

TEST(Gelu, IsExact) {
  Gelu gelu;
  const Tensor x = random({50});
  const Tensor y = gelu(Variable(x)).data();
  for (int i = 0; i < 50; ++i) {
    const double v = x.at({i});
    EXPECT_NEAR(y.at({i}), v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))), 1e-12);
  }
}

}  // namespace
}  // namespace gyre
