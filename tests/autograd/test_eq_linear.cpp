#include <cmath>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/reduction.h"
#include "core/memory.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;
using Inputs = std::vector<Variable>;

/// The dense matrix of the layer from its definition: Y[d,t] = Σ X[c,s] W[d,c,t⁻¹s].
Variable dense(const Group& group, const Variable& x, const Tensor& w, const Tensor& b) {
  const std::int64_t outputs = w.size(0), inputs = w.size(1), order = group.order();
  Tensor matrix = Tensor::empty({outputs * order, inputs * order}, DType::f64);
  Tensor bias = Tensor::empty({outputs * order}, DType::f64);
  double* cell = matrix.mutable_data<double>();
  double* shift = bias.mutable_data<double>();
  for (std::int64_t d = 0; d < outputs; ++d) {
    for (int t = 0; t < group.order(); ++t) {
      *shift++ = b.at({d});
      for (std::int64_t c = 0; c < inputs; ++c) {
        for (int s = 0; s < group.order(); ++s) *cell++ = w.at({d, c, group.mul(group.inv(t), s)});
      }
    }
  }
  return linear(x, Variable(matrix), Variable(bias));
}

class EqLinearOperation : public testing::TestWithParam<std::tuple<std::string_view, EqBackend>> {
 protected:
  const Group& group() const { return Group::get(std::get<0>(GetParam())); }
  std::int64_t order() const { return group().order(); }
  EqLinearOptions options() const { return {std::get<1>(GetParam()), 0}; }
  Operation operation(EqLinearOptions options) const {
    return [this, options](Inputs& in) {
      return eq_linear(group(), in[0], in[1], in.size() > 2 ? in[2] : Variable(), options);
    };
  }
};

TEST_P(EqLinearOperation, Gradients) {
  const std::int64_t t = order();
  EXPECT_TRUE(gradients_agree(operation(options()), {{3, 3 * t}, {2, 3, t}, {2}}));
  EXPECT_TRUE(gradients_agree(operation(options()), {{2, 2 * t}, {3, 2, t}}));
}

TEST_P(EqLinearOperation, GradientsOfOneChannelAndRow) {
  EXPECT_TRUE(gradients_agree(operation(options()), {{1, order()}, {1, 1, order()}, {1}}));
}

TEST_P(EqLinearOperation, GradientsForAnyLeadingDimensions) {
  EXPECT_TRUE(gradients_agree(operation(options()), {{2, 2, order()}, {2, 1, order()}, {2}}));
  EXPECT_TRUE(gradients_agree(operation(options()), {{2 * order()}, {1, 2, order()}, {1}}));
}

TEST_P(EqLinearOperation, GradientsOfEveryProductCount) {
  for (const int products : {group().plain_form().products(), group().fewest_form().products()}) {
    EqLinearOptions chosen = options();
    chosen.products = products;
    EXPECT_TRUE(gradients_agree(operation(chosen), {{2, 2 * order()}, {2, 2, order()}, {2}})) << products;
  }
}

TEST_P(EqLinearOperation, GradientsWithPlanes) {
  auto planes = std::make_shared<kernels::EqPlanes>();
  const auto cached = [&](Inputs& in) { return eq_linear(group(), in[0], in[1], in[2], options(), planes); };
  EXPECT_TRUE(gradients_agree(cached, {{2, 2 * order()}, {2, 2, order()}, {2}}));
}

TEST_P(EqLinearOperation, GradientsWithFrozenParts) {
  const Variable x(random_tensor({2, 2 * order()})), w(random_tensor({3, 2, order()}, 1)),
      b(random_tensor({3}, 2));
  const auto layer = [&](const Variable& in, const Variable& weight, const Variable& bias) {
    return eq_linear(group(), in, weight, bias, options());
  };
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return layer(in[0], w, b); }, {{2, 2 * order()}}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return layer(x, in[0], b); }, {{3, 2, order()}}));
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return layer(x, w, in[0]); }, {{3}}));
}

TEST_P(EqLinearOperation, EqualsTheDenseMatrix) {
  const Variable x(random_tensor({2, 5, 7 * order()}), true);
  const Tensor w = random_tensor({3, 7, order()}, 1), b = random_tensor({3}, 2);
  const Tensor grad = random_tensor({2, 5, 3 * order()}, 3);
  const Variable y = eq_linear(group(), x, Variable(w), Variable(b), options());
  y.backward(grad);
  const std::vector<double> value = y.data().to_vector(), dx = x.grad().to_vector();
  Variable again(x.data(), true);
  const Variable expected = dense(group(), again, w, b);
  expected.backward(grad);
  const std::vector<double> reference = expected.data().to_vector(), dx_reference = again.grad().to_vector();
  for (std::size_t i = 0; i < value.size(); ++i) EXPECT_NEAR(value[i], reference[i], 1e-12);
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], dx_reference[i], 1e-12);
}

TEST_P(EqLinearOperation, GradientsThroughGelu) {
  const auto activated = [this](Inputs& in) {
    return eq_linear(group(), in[0], in[1], in.size() > 2 ? in[2] : Variable(), options(), nullptr,
                     Activation::gelu);
  };
  EXPECT_TRUE(gradients_agree(activated, {{3, 2 * order()}, {2, 2, order()}, {2}}));
  EXPECT_TRUE(gradients_agree(activated, {{2, 1, order()}, {3, 1, order()}}));
}

TEST_P(EqLinearOperation, GeluEqualsTheComposition) {
  const Tensor w = random_tensor({6, 5, order()}, 1), b = random_tensor({6}, 2);
  const Tensor grad = random_tensor({4, 3, 6 * order()}, 3);
  const auto run = [&](bool fused) {
    const Variable x(random_tensor({4, 3, 5 * order()}), true), weight(w, true), bias(b, true);
    const Variable y = fused ? eq_linear(group(), x, weight, bias, options(), nullptr, Activation::gelu)
                             : gelu(eq_linear(group(), x, weight, bias, options()));
    y.backward(grad);
    return std::vector{y.data().to_vector(), x.grad().to_vector(), weight.grad().to_vector(),
                       bias.grad().to_vector()};
  };
  const auto one = run(true), two = run(false);
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_THAT(one[i], testing::Pointwise(testing::DoubleNear(1e-12), two[i])) << i;
}

TEST_P(EqLinearOperation, InferenceKeepsNothingBeforeGelu) {
  const Variable x(random_tensor({64, 4 * order()})), w(random_tensor({8, 4, order()}, 1));
  const auto layer = [&] {
    return eq_linear(group(), x, w, Variable(), options(), nullptr, Activation::gelu);
  };
  const Variable trained =
      eq_linear(group(), x, Variable(w.data(), true), Variable(), options(), nullptr, Activation::gelu);
  const std::size_t before = memory_stats().active;
  const Variable y = layer();
  EXPECT_LT(memory_stats().active - before, 2 * 64 * 8 * static_cast<std::size_t>(order()) * sizeof(double));
  EXPECT_EQ(y.data().to_vector(), trained.data().to_vector());
}

TEST_P(EqLinearOperation, NoRows) {
  const Variable x(random_tensor({0, 2 * order()}), true), w(random_tensor({3, 2, order()}), true);
  const Variable y = eq_linear(group(), x, w, Variable(), options());
  EXPECT_EQ(y.shape(), (Shape{0, 3 * order()}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_EQ(w.grad().to_vector(), std::vector<double>(static_cast<std::size_t>(6 * order())));
}

TEST_P(EqLinearOperation, StaleWeightIsRefused) {
  Tensor weight = random_tensor({3, 2, order()});
  const Variable x(random_tensor({2, 2 * order()}), true), w(weight, true);
  const Variable y = sum(eq_linear(group(), x, w, Variable(), options()));
  weight.fill_(1);
  EXPECT_EQ(error_of([&] { y.backward(); }), "eq_linear: a tensor saved for backward was changed in place");
}

INSTANTIATE_TEST_SUITE_P(All, EqLinearOperation,
                         testing::Combine(testing::ValuesIn(Group::names().begin(), Group::names().end()),
                                          testing::Values(EqBackend::flash, EqBackend::naive)),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", std::get<0>(instance.param),
                                              kernels::name_of(std::get<1>(instance.param)));
                         });

TEST(EqLinearOperation, HandExample) {
  const Variable x(Tensor::from({5.0, 6.0, 7.0, 8.0}, {1, 4})),
      w(Tensor::from({1.0, 2.0, 3.0, 4.0}, {1, 1, 4}));
  for (const EqBackend backend : {EqBackend::flash, EqBackend::naive, EqBackend::automatic}) {
    const std::vector<double> y =
        eq_linear(Group::get("c4"), x, w, Variable(), {backend, 0}).data().to_vector();
    EXPECT_THAT(y, testing::Pointwise(testing::DoubleNear(1e-12), {70, 64, 62, 64}));
  }
}

TEST(EqLinearOperation, MicroStepsRebuildThePlanesOnce) {
  auto planes = std::make_shared<kernels::EqPlanes>();
  const Group& group = Group::get("c4");
  const Variable x(random_tensor({6, 8}, 0, DType::f32), true),
      w(random_tensor({2, 2, 4}, 1, DType::f32), true);
  const auto step = [&] {
    sum(eq_linear(group, x, w, Variable(), {EqBackend::flash, 0}, planes)).backward();
  };
  step();
  const int first = planes->rebuilds();
  EXPECT_GE(first, 1);
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(planes->rebuilds(), first);
  Tensor data = w.data();
  data.fill_(0.5);
  step();
  EXPECT_EQ(planes->rebuilds(), 2 * first);
}

TEST(EqLinearOperation, PlanesOutliveTheLayer) {
  auto planes = std::make_shared<kernels::EqPlanes>();
  const Variable x(random_tensor({6, 8}), true), w(random_tensor({2, 2, 4}, 1), true);
  const Variable y = eq_linear(Group::get("c4"), x, w, Variable(), {}, planes);
  const std::weak_ptr<kernels::EqPlanes> watch = planes;
  planes.reset();
  EXPECT_FALSE(watch.expired());
  sum(y).backward();  // y lives on, its closure does not
  EXPECT_TRUE(watch.expired());
}

TEST(EqLinearOperation, Errors) {
  const Group& group = Group::get("c4");
  const Variable w(random_tensor({3, 2, 4}));
  EXPECT_EQ(error_of([&] {
              eq_linear(group, Variable(random_tensor({5, 9})), w, Variable());
            }),
            "eq_linear: x [5, 9] does not fit the weight [3, 2, 4] [out, in, 4] of group c4");
  EXPECT_THAT(error_of([&] {
                eq_linear(Group::get("d4"), Variable(random_tensor({5, 16})), w, Variable());
              }),
              HasSubstr("group d4"));
  EXPECT_THAT(error_of([&] {
                eq_linear(group, Variable(random_tensor({5, 8})), w, Variable(random_tensor({4})));
              }),
              HasSubstr("[4]"));
  EXPECT_THAT(error_of([&] {
                eq_linear(group, Variable(random_tensor({5, 8})), w, Variable(), {EqBackend::flash, 7});
              }),
              HasSubstr("7"));
}

}  // namespace
}  // namespace gyre
