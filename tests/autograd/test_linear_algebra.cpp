#include "autograd/ops/linear_algebra.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;
using Inputs = std::vector<Variable>;

Variable product(Inputs& in) { return matmul(in[0], in[1]); }
Variable with_bias(Inputs& in) { return linear(in[0], in[1], in[2]); }
Variable without_bias(Inputs& in) { return linear(in[0], in[1], Variable()); }

TEST(Matmul, Gradients) {
  EXPECT_TRUE(gradients_agree(product, {{3, 4}, {4, 2}}));
  EXPECT_TRUE(gradients_agree(product, {{1, 1}, {1, 1}}));
  EXPECT_TRUE(gradients_agree(product, {{1, 5}, {5, 3}}));
}

TEST(Matmul, BatchedGradients) {
  EXPECT_TRUE(gradients_agree(product, {{2, 3, 4}, {2, 4, 2}}));
  EXPECT_TRUE(gradients_agree(product, {{2, 2, 3, 2}, {2, 2, 2, 3}}));
}

TEST(Matmul, OneRightSideForAllGradients) {
  EXPECT_TRUE(gradients_agree(product, {{2, 3, 4}, {4, 2}}));
  EXPECT_TRUE(gradients_agree(product, {{2, 2, 3, 2}, {2, 3}}));
}

TEST(Matmul, TransposedViewsGradients) {
  const auto crossed = [](Inputs& in) { return matmul(in[0], transpose(in[1], -2, -1)); };
  EXPECT_TRUE(gradients_agree(crossed, {{2, 3, 4}, {2, 5, 4}}));
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return matmul(in[0], transpose(in[0], 0, 1)); }, {{3, 2}}));
}

TEST(Matmul, GradientsOfOneSideOnly) {
  const Variable fixed(random_tensor({3, 3}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return matmul(fixed, in[0]); }, {{3, 2}}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return matmul(in[0], fixed); }, {{2, 3}}));
}

TEST(Matmul, EmptyInner) {
  const Variable a(random_tensor({2, 0}), true), b(random_tensor({0, 3}), true);
  const Variable y = matmul(a, b);
  EXPECT_EQ(y.data().to_vector(), std::vector<double>(6));
  sum(y).backward();
  EXPECT_EQ(a.grad().shape(), (Shape{2, 0}));
  EXPECT_EQ(b.grad().shape(), (Shape{0, 3}));
}

TEST(Matmul, ErrorsNameBothShapes) {
  const std::string text = error_of([] {
    matmul(Variable(random_tensor({2, 3})), Variable(random_tensor({4, 2})));
  });
  EXPECT_THAT(text, HasSubstr("[2, 3]"));
  EXPECT_THAT(text, HasSubstr("[4, 2]"));
}

TEST(Linear, Gradients) {
  EXPECT_TRUE(gradients_agree(with_bias, {{3, 4}, {5, 4}, {5}}));
  EXPECT_TRUE(gradients_agree(without_bias, {{3, 4}, {5, 4}}));
  EXPECT_TRUE(gradients_agree(with_bias, {{1, 1}, {1, 1}, {1}}));
}

TEST(Linear, GradientsForAnyLeadingDimensions) {
  EXPECT_TRUE(gradients_agree(with_bias, {{2, 3, 4}, {3, 4}, {3}}));
  EXPECT_TRUE(gradients_agree(with_bias, {{2, 1, 2, 3}, {2, 3}, {2}}));
  EXPECT_TRUE(gradients_agree(with_bias, {{4}, {3, 4}, {3}}));
}

TEST(Linear, GradientsWithACache) {
  auto cache = std::make_shared<kernels::PackedWeight>();
  EXPECT_TRUE(
      gradients_agree([&](Inputs& in) { return linear(in[0], in[1], in[2], cache); }, {{3, 4}, {5, 4}, {5}}));
}

TEST(Linear, GradientsWithAnActivation) {
  const auto active = [](Inputs& in) {
    return linear(in[0], in[1], in.size() > 2 ? in[2] : Variable(), nullptr, Activation::gelu);
  };
  EXPECT_TRUE(gradients_agree(active, {{2, 3, 4}, {5, 4}, {5}}));
  EXPECT_TRUE(gradients_agree(active, {{3, 4}, {5, 4}}));
  const Variable w(random_tensor({5, 4}, 1)), b(random_tensor({5}, 2));
  EXPECT_TRUE(
      gradients_agree([&](Inputs& in) { return linear(in[0], w, b, nullptr, Activation::gelu); }, {{3, 4}}));
}

TEST(Linear, AnActivationEqualsItsOwnOperation) {
  std::vector<std::vector<double>> results[2];
  for (const int fused : {0, 1}) {
    const Variable x(random_tensor({6, 4}), true), w(random_tensor({5, 4}, 1), true),
        b(random_tensor({5}, 2), true);
    const Variable y = fused ? linear(x, w, b, nullptr, Activation::gelu) : gelu(linear(x, w, b));
    y.backward(random_tensor({6, 5}, 3));
    results[fused] = {y.data().to_vector(), x.grad().to_vector(), w.grad().to_vector(), b.grad().to_vector()};
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Linear, GradientsWithFrozenParts) {
  const Variable x(random_tensor({3, 4})), w(random_tensor({5, 4}, 1)), b(random_tensor({5}, 2));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return linear(in[0], w, b); }, {{3, 4}}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return linear(x, in[0], b); }, {{5, 4}}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return linear(x, w, in[0]); }, {{5}}));
}

TEST(Linear, EqualsItsPlainTwin) {
  const Variable x(random_tensor({2, 3, 4})), w(random_tensor({5, 4}, 1)), b(random_tensor({5}, 2));
  const std::vector<double> fused = linear(x, w, b).data().to_vector();
  const std::vector<double> plain = (matmul(x, transpose(w, 0, 1)) + b).data().to_vector();
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-14);
}

TEST(Linear, NoRows) {
  const Variable x(random_tensor({2, 0, 4}), true), w(random_tensor({5, 4}), true),
      b(random_tensor({5}), true);
  const Variable y = linear(x, w, b);
  EXPECT_EQ(y.shape(), (Shape{2, 0, 5}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{2, 0, 4}));
  EXPECT_EQ(w.grad().to_vector(), std::vector<double>(20));
  EXPECT_EQ(b.grad().to_vector(), std::vector<double>(5));
}

TEST(Linear, CacheOutlivesTheLayer) {
  auto cache = std::make_shared<kernels::PackedWeight>();
  const Variable x(random_tensor({3, 4}, 0, DType::f32), true), w(random_tensor({5, 4}, 1, DType::f32), true);
  const Variable y = linear(x, w, Variable(), cache);
  const std::weak_ptr<kernels::PackedWeight> watch = cache;
  cache.reset();
  EXPECT_FALSE(watch.expired());
  sum(y).backward();  // y lives on, its closure does not
  EXPECT_TRUE(watch.expired());
}

TEST(Linear, Errors) {
  const Variable x(random_tensor({3, 4})), w(random_tensor({5, 3}));
  EXPECT_EQ(error_of([&] { linear(x, w, Variable()); }),
            "linear: x [3, 4] does not fit the weight [5, 3] [out, in]");
  EXPECT_THAT(error_of([&] { linear(Variable(random_tensor({})), w, Variable()); }), HasSubstr("x []"));
  EXPECT_THAT(error_of([&] {
                linear(Variable(random_tensor({2, 3})), w, Variable(random_tensor({4})));
              }),
              HasSubstr("[4]"));
}

}  // namespace
}  // namespace gyre
