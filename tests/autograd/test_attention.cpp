#include "autograd/ops/attention.h"

#include <cmath>
#include <limits>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;
using Inputs = std::vector<Variable>;

Variable fused(Inputs& in) { return attention(in[0]); }
Variable plain(Inputs& in) { return attention_reference(in[0]); }

TEST(Attention, Gradients) {
  EXPECT_TRUE(gradients_agree(fused, {{2, 3, 3, 2, 2}}));
  EXPECT_TRUE(gradients_agree(fused, {{1, 4, 3, 1, 3}}));
  EXPECT_TRUE(gradients_agree(fused, {{1, 1, 3, 1, 1}}));
}

/// The last key of the second window is hidden.
Tensor mask_of_two() {
  Tensor mask = Tensor::zeros({2, 3, 3}, DType::f64);
  mask.select(0, 1).slice(0, 0, 2).slice(1, 2, 3).fill_(-std::numeric_limits<double>::infinity());
  return mask;
}

TEST(Attention, WindowGradients) {
  const auto windows = [](Inputs& in) { return attention(in[0], in[1], mask_of_two()); };
  EXPECT_TRUE(gradients_agree(windows, {{4, 3, 3, 2, 2}, {2, 3, 3}}));
  const auto twin = [](Inputs& in) { return attention_reference(in[0], in[1], mask_of_two()); };
  EXPECT_TRUE(gradients_agree(twin, {{4, 3, 3, 2, 2}, {2, 3, 3}}));
}

TEST(Attention, WindowsEqualTheReference) {
  const Tensor qkv = random_tensor({4, 3, 3, 2, 4}), table = random_tensor({2, 3, 3}, 1);
  const Tensor grad = random_tensor({4, 3, 8}, 2);
  const Variable x(qkv, true), bias(table, true), other_x(qkv, true), other_bias(table, true);
  const Variable y = attention(x, bias, mask_of_two());
  const Variable expected = attention_reference(other_x, other_bias, mask_of_two());
  y.backward(grad);
  expected.backward(grad);
  for (const auto& [value, wanted] :
       {std::pair{y.data(), expected.data()}, {x.grad(), other_x.grad()}, {bias.grad(), other_bias.grad()}})
    EXPECT_THAT(value.to_vector(), testing::Pointwise(testing::DoubleNear(1e-12), wanted.to_vector()));
}

TEST(Attention, ReferenceGradients) { EXPECT_TRUE(gradients_agree(plain, {{2, 3, 3, 2, 2}})); }

TEST(Attention, EqualsTheReference) {
  for (const Shape& shape : {Shape{2, 5, 3, 2, 4}, Shape{1, 17, 3, 3, 8}, Shape{3, 1, 3, 1, 4}}) {
    // Larger scores make a sharp softmax, where a wrong scale shows.
    const Tensor qkv = affine(Variable(random_tensor(shape)), 3).data();
    const Tensor grad = random_tensor({shape[0], shape[1], shape[3] * shape[4]}, 1);
    const Variable x(qkv, true), reference(qkv, true);
    const Variable y = attention(x), expected = attention_reference(reference);
    y.backward(grad);
    expected.backward(grad);
    EXPECT_EQ(y.shape(), expected.shape());
    EXPECT_THAT(y.data().to_vector(),
                testing::Pointwise(testing::DoubleNear(1e-12), expected.data().to_vector()));
    EXPECT_THAT(x.grad().to_vector(),
                testing::Pointwise(testing::DoubleNear(1e-12), reference.grad().to_vector()));
  }
}

TEST(Attention, SameValueWithoutGradient) {
  const Variable x(random_tensor({2, 5, 3, 2, 4}), true);
  const std::vector<double> recorded = attention(x).data().to_vector();
  const NoGrad no_grad;
  EXPECT_EQ(attention(x).data().to_vector(), recorded);
}

TEST(Attention, ReferenceByHand) {
  // One head, E = 1: scores q·k, values 1 and 3.
  const Variable qkv(Tensor::from({0.0, 1.0, 1.0, 2.0, -1.0, 3.0}, {1, 2, 3, 1, 1}));
  const double weight = 1 / (1 + std::exp(-4.0));  // scores 2 and -2 of the second query
  EXPECT_THAT(attention_reference(qkv).data().to_vector(),
              testing::Pointwise(testing::DoubleNear(1e-14), {2.0, weight * 1 + (1 - weight) * 3}));
}

TEST(Attention, EmptyBatch) {
  const Variable x(random_tensor({0, 4, 3, 2, 4}), true);
  const Variable y = attention(x);
  EXPECT_EQ(y.shape(), (Shape{0, 4, 8}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
}

TEST(Attention, Errors) {
  const Variable x(random_tensor({2, 3, 2, 2, 2}));
  EXPECT_THAT(error_of([&] { attention(x); }), HasSubstr("[2, 3, 2, 2, 2]"));
  EXPECT_THAT(error_of([&] { attention_reference(x); }), HasSubstr("[2, 3, 2, 2, 2]"));
}

}  // namespace
}  // namespace gyre
