#include "autograd/variable.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/reduction.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::random_tensor;
using testing::HasSubstr;

TEST(Variable, LeafReportsItsData) {
  const Variable x(random_tensor({2, 3}), true);
  EXPECT_TRUE(x.defined() && x.is_leaf() && x.requires_grad());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.dtype(), DType::f64);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Variable, UndefinedVariableThrowsOnUse) {
  const Variable x;
  EXPECT_FALSE(x.defined() || x.requires_grad() || x.is_leaf());
  EXPECT_THAT(error_of([&] { x.data(); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([&] { x.grad(); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([] { return Variable{Tensor()}; }), HasSubstr("defined"));
}

TEST(Variable, IntegersHaveNoGradient) {
  EXPECT_THAT(error_of([] { Variable(Tensor::arange(3), true); }), HasSubstr("i64"));
  EXPECT_FALSE(Variable(Tensor::arange(3)).requires_grad());
}

TEST(Variable, ResultsRecordOnlyWhereAnInputNeedsIt) {
  const Variable x(random_tensor({2}), true), c(random_tensor({2}));
  EXPECT_TRUE((x + c).requires_grad());
  EXPECT_FALSE((x + c).is_leaf());
  EXPECT_FALSE((c + c).requires_grad());
  EXPECT_TRUE((c + c).is_leaf());
}

TEST(Variable, NoGradNestsAndRestores) {
  const Variable x(random_tensor({2}), true);
  {
    const NoGrad outer;
    EXPECT_FALSE(grad_enabled());
    {
      const NoGrad inner;
      EXPECT_FALSE(neg(x).requires_grad());
    }
    EXPECT_FALSE(neg(x).requires_grad());
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_TRUE(neg(x).requires_grad());
}

TEST(Variable, DetachSharesDataWithoutHistory) {
  const Variable x(random_tensor({2}), true);
  const Variable y = neg(x), z = y.detach();
  EXPECT_FALSE(z.requires_grad());
  EXPECT_EQ(z.data().storage(), y.data().storage());
}

TEST(Variable, SetDataChecksShapeAndLeaf) {
  Variable x(random_tensor({2, 3}), true);
  const Tensor other = random_tensor({2, 3}, 1);
  x.set_data(other);
  EXPECT_EQ(x.data().storage(), other.storage());
  EXPECT_THAT(error_of([&] { x.set_data(random_tensor({3, 2})); }), HasSubstr("[3, 2]"));
  Variable y = neg(x);
  EXPECT_THAT(error_of([&] { y.set_data(other); }), HasSubstr("neg"));
  Variable none;
  EXPECT_THAT(error_of([&] { none.set_data(other); }), HasSubstr("undefined"));
}

TEST(Variable, SetDataOfAnotherTypeDropsTheGradient) {
  Variable x(random_tensor({2}), true);
  sum(neg(x)).backward();
  ASSERT_TRUE(x.grad().defined());
  x.set_data(x.data().to(DType::f32));
  EXPECT_FALSE(x.grad().defined());
  sum(neg(x)).backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
}

TEST(Variable, CopiesShareTheGradient) {
  Variable x(random_tensor({2}), true);
  const Variable copy = x;
  sum(copy).backward();
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{1, 1}));
  x.zero_grad();
  EXPECT_FALSE(copy.grad().defined());
}

TEST(Variable, GradientsCanBeTurnedOffOnALeaf) {
  Variable x(Tensor::ones({2}, DType::f64), true);
  Variable w(Tensor::full({2}, 3, DType::f64), true);
  sum(x * w).backward();
  EXPECT_TRUE(w.grad().defined());
  w.set_requires_grad(false);
  EXPECT_FALSE(w.grad().defined());
  x.zero_grad();
  sum(x * w).backward();
  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{3, 3}));
  w.set_requires_grad(true);
  EXPECT_TRUE((x * w).requires_grad());
  Variable y = x * w;
  EXPECT_THROW(y.set_requires_grad(false), Error);
  EXPECT_THROW(Variable(Tensor::zeros({2}, DType::i64)).set_requires_grad(true), DTypeError);
}

TEST(SavedTensor, ThrowsAfterAnInPlaceChange) {
  Tensor data = random_tensor({4});
  const Variable x(data, true);
  const Variable y = sum(gelu(x));
  data.fill_(1);
  EXPECT_EQ(error_of([&] { y.backward(); }), "gelu: a tensor saved for backward was changed in place");
}

TEST(SavedTensor, SeesChangesThroughAnyView) {
  Tensor data = random_tensor({4, 2});
  const SavedTensor saved(data.select(1, 0));
  EXPECT_EQ(saved.unpack("op").shape(), (Shape{4}));
  data.select(1, 1).fill_(0);
  EXPECT_THAT(error_of([&] { saved.unpack("op"); }), HasSubstr("op: "));
  EXPECT_FALSE(SavedTensor(Tensor()).unpack("op").defined());
}

TEST(SavedTensor, StaleWeightOfALinearLayerIsRefused) {
  Tensor weight = random_tensor({2, 3});
  const Variable x(random_tensor({4, 3}, 1), true), w(weight, true);
  const Variable y = sum(linear(x, w, Variable()));
  weight.fill_(0.5);
  EXPECT_EQ(error_of([&] { y.backward(); }), "linear: a tensor saved for backward was changed in place");
}

}  // namespace
}  // namespace gyre
