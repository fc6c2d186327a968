#include "autograd/ops/loss.h"

#include <cmath>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/normalization.h"
#include "autograd/ops/reduction.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;
using Inputs = std::vector<Variable>;

Tensor labels(std::initializer_list<std::int64_t> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

/// Rows that add to one.
Tensor distribution(const Shape& shape) { return softmax(Variable(random_tensor(shape, 9))).data(); }

TEST(CrossEntropy, Gradients) {
  for (const double smoothing : {0.0, 0.1, 0.75}) {
    const auto operation = [&](Inputs& in) { return cross_entropy(in[0], labels({2, 0, 2}), smoothing); };
    EXPECT_TRUE(gradients_agree(operation, {{3, 4}})) << smoothing;
  }
  EXPECT_TRUE(gradients_agree([](Inputs& in) { return cross_entropy(in[0], labels({1})); }, {{1, 2}}));
}

TEST(CrossEntropy, SoftGradients) {
  const Tensor targets = distribution({3, 4});
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return cross_entropy_soft(in[0], targets); }, {{3, 4}}));
  const Tensor strided = with_layout(targets, Layout::transposed);
  EXPECT_TRUE(gradients_agree([&](Inputs& in) { return cross_entropy_soft(in[0], strided); }, {{3, 4}}));
}

TEST(CrossEntropy, EqualsItsDefinition) {
  const Variable logits(random_tensor({3, 5}));
  const Tensor targets = distribution({3, 5});
  const double plain = -sum(Variable(targets) * log(softmax(logits))).data().item() / 3;
  EXPECT_NEAR(cross_entropy_soft(logits, targets).data().item(), plain, 1e-14);
}

TEST(CrossEntropy, SmoothedLabelsAreSoftTargets) {
  const Variable logits(random_tensor({2, 4}), true), soft(logits.data(), true);
  // 0.2 smoothing of 4 classes: 0.85 for the label, 0.05 for the others.
  const Tensor targets = Tensor::from({0.05, 0.05, 0.05, 0.85, 0.05, 0.85, 0.05, 0.05}, {2, 4});
  const Variable a = cross_entropy(logits, labels({3, 1}), 0.2), b = cross_entropy_soft(soft, targets);
  EXPECT_NEAR(a.data().item(), b.data().item(), 1e-14);
  a.backward();
  b.backward();
  EXPECT_THAT(logits.grad().to_vector(),
              testing::Pointwise(testing::DoubleNear(1e-14), soft.grad().to_vector()));
}

TEST(CrossEntropy, ScaledLossScalesTheGradient) {
  const Variable logits(random_tensor({2, 4}), true), half(logits.data(), true);
  cross_entropy(logits, labels({3, 1})).backward();
  affine(cross_entropy(half, labels({3, 1})), 0.5).backward();
  const std::vector<double> whole = logits.grad().to_vector(), part = half.grad().to_vector();
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_DOUBLE_EQ(whole[i], 2 * part[i]);
}

TEST(CrossEntropy, OneClassCostsNothing) {
  const Variable logits(random_tensor({2, 1}), true);
  const Variable loss = cross_entropy(logits, labels({0, 0}));
  EXPECT_EQ(loss.shape(), (Shape{1}));
  EXPECT_NEAR(loss.data().item(), 0, 1e-15);
  loss.backward();
  EXPECT_THAT(logits.grad().to_vector(), testing::Each(testing::DoubleNear(0, 1e-15)));
}

TEST(CrossEntropy, Errors) {
  const Variable logits(random_tensor({2, 4}));
  EXPECT_THAT(error_of([&] { cross_entropy(logits, labels({1, 4})); }), HasSubstr("4"));
  EXPECT_NE(error_of([&] { cross_entropy(logits, labels({1, -1})); }), "no error");
  EXPECT_NE(error_of([&] { cross_entropy(logits, labels({1})); }), "no error");
  EXPECT_NE(error_of([&] { cross_entropy(logits, labels({1, 2}), 1); }), "no error");
  EXPECT_NE(error_of([&] { cross_entropy_soft(logits, random_tensor({2, 3})); }), "no error");
}

TEST(CrossEntropy, ChangedTargetsAreRefused) {
  Tensor truth = labels({3, 1});
  const Variable logits(random_tensor({2, 4}), true);
  const Variable loss = cross_entropy(logits, truth);
  truth.fill_(0);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("cross_entropy: a tensor saved"));
}

}  // namespace
}  // namespace gyre
