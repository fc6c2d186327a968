#include "autograd/gradcheck.h"

#include <cmath>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::random_tensor;
using testing::HasSubstr;

/// 2x, with a backward of choice.
Operation twice(const BackwardFunction& backward) {
  return [backward](std::vector<Variable>& in) {
    return make_result("twice", affine(in[0].detach(), 2).data(), {in[0]}, backward);
  };
}

Gradients right(const Tensor& grad) { return {affine(Variable(grad), 2).data()}; }

TEST(Gradcheck, AcceptsARightGradient) {
  EXPECT_TRUE(check_all_layouts(twice(right), {{3, 2}}).pass);
  const GradcheckResult result =
      check_all_layouts([](std::vector<Variable>& in) { return tanh(in[0]); }, {{3, 2}});
  EXPECT_TRUE(result.pass) << result.where;
  EXPECT_GT(result.worst, 0);
  EXPECT_LT(result.worst, 1e-9);
}

TEST(Gradcheck, RefusesASmallError) {
  const GradcheckResult result = check_all_layouts(
      twice([](const Tensor& grad) -> Gradients { return {affine(Variable(grad), 2 + 1e-5).data()}; }),
      {{3, 2}});
  EXPECT_FALSE(result.pass);
  EXPECT_THAT(result.where, HasSubstr("input 0, element 0"));
}

TEST(Gradcheck, RefusesABackwardThatIgnoresStrides) {
  const auto blind = [](const Tensor& grad) -> Gradients {
    const auto elements = static_cast<std::int64_t>(grad.storage()->bytes() / sizeof(double));
    Tensor dx = Tensor::zeros(grad.shape(), DType::f64);
    for (std::int64_t i = 0; i < std::min(elements, grad.numel()); ++i) {
      dx.mutable_data<double>()[i] = 2 * grad.data<double>()[i];
    }
    return {dx};
  };
  const GradcheckResult result = gradcheck(twice(blind), {random_tensor({3, 2})});
  EXPECT_FALSE(result.pass);
  EXPECT_THAT(result.where, HasSubstr("transposed gradient"));
  EXPECT_THAT(gradcheck(twice(blind), {random_tensor({3})}).where, HasSubstr("sliced gradient"));
}

TEST(Gradcheck, RefusesABackwardThatIgnoresExpandedGradients) {
  const auto blind = [](const Tensor& grad) -> Gradients {
    if (grad.strides()[0] == 0) return {Tensor::zeros(grad.shape(), DType::f64)};
    return right(grad);
  };
  EXPECT_THAT(gradcheck(twice(blind), {random_tensor({3, 2})}).where, HasSubstr("expanded gradient"));
}

TEST(Gradcheck, RefusesAForwardThatIgnoresStrides) {
  const Operation blind = [](std::vector<Variable>& in) {
    const auto* data = in[0].data().data<double>();
    Tensor y = Tensor::empty(in[0].shape(), DType::f64);
    for (std::int64_t i = 0; i < y.numel(); ++i) y.mutable_data<double>()[i] = 2 * data[i];
    return make_result("blind", y, {in[0]}, right);
  };
  EXPECT_TRUE(gradcheck(blind, {random_tensor({3, 2})}).pass);
  EXPECT_THAT(check_all_layouts(blind, {{3, 2}}).where, HasSubstr("transposed inputs: output"));
}

TEST(Gradcheck, RefusesOneWrongElement) {
  const auto spoiled = [](const Tensor& grad) -> Gradients {
    Gradients grads = right(grad);
    grads[0].mutable_data<double>()[5] *= 1.001;
    return grads;
  };
  EXPECT_THAT(gradcheck(twice(spoiled), {random_tensor({3, 2})}).where, HasSubstr("element 5"));
}

TEST(Gradcheck, RefusesMissingAndInfiniteGradients) {
  EXPECT_FALSE(
      gradcheck(twice([](const Tensor&) -> Gradients { return {Tensor()}; }), {random_tensor({2})}).pass);
  const auto infinite = [](const Tensor& grad) -> Gradients {
    return {Tensor::full(grad.shape(), std::nan(""), DType::f64)};
  };
  EXPECT_FALSE(gradcheck(twice(infinite), {random_tensor({2})}).pass);
}

TEST(Gradcheck, RefusesZerosAndChangingResults) {
  const Operation zero = [](std::vector<Variable>& in) { return in[0] - in[0]; };
  EXPECT_THAT(gradcheck(zero, {random_tensor({2})}).where, HasSubstr("zero"));
  int calls = 0;
  const Operation drifting = [&calls](std::vector<Variable>& in) { return affine(in[0], 1, ++calls); };
  EXPECT_THAT(gradcheck(drifting, {random_tensor({2})}).where, HasSubstr("second forward"));
  int backwards = 0;
  const auto flicker = [&backwards](const Tensor& grad) -> Gradients {
    return {affine(Variable(grad), ++backwards % 2 == 0 ? 2 : 2 + 1e-12).data()};
  };
  EXPECT_THAT(gradcheck(twice(flicker), {random_tensor({2})}).where, HasSubstr("second backward"));
}

TEST(Gradcheck, TakesDoublesOnly) {
  EXPECT_THAT(error_of([] { gradcheck(twice(right), {random_tensor({2}, 0, DType::f32)}); }),
              HasSubstr("f32"));
}

TEST(Layouts, KeepTheValues) {
  const Tensor values = random_tensor({3, 4, 2});
  for (const Layout layout : {Layout::contiguous, Layout::transposed, Layout::sliced}) {
    EXPECT_EQ(with_layout(values, layout).to_vector(), values.to_vector());
    EXPECT_EQ(with_layout(values, layout).is_contiguous(), layout == Layout::contiguous);
  }
  const Tensor repeated = with_layout(values, Layout::expanded);
  EXPECT_EQ(repeated.strides()[0], 0);
  EXPECT_EQ(repeated.select(0, 2).to_vector(), values.select(0, 0).to_vector());
  EXPECT_EQ(with_layout(random_tensor({1, 4}), Layout::expanded).strides()[1], 0);
  EXPECT_EQ(with_layout(random_tensor({}), Layout::sliced).numel(), 1);
}

}  // namespace
}  // namespace gyre
