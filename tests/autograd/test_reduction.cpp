#include "autograd/ops/reduction.h"

#include "autograd/ops/elementwise.h"
#include "tests/autograd/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gradients_agree;
using test::random_tensor;
using testing::HasSubstr;

/// A factor per element first, so that a reduction over the wrong dimension shows.
Variable weighted(const Variable& x) { return x * x; }

TEST(Reduction, Values) {
  const Variable x(Tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3}));
  EXPECT_EQ(sum(x).data().item(), 21);
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(mean(x).data().item(), 3.5);
  EXPECT_EQ(sum(x, {0}).data().to_vector(), (std::vector<double>{5, 7, 9}));
  EXPECT_EQ(mean(x, {-1}, true).data().to_vector(), (std::vector<double>{2, 5}));
  EXPECT_EQ(mean(x, {-1}, true).shape(), (Shape{2, 1}));
}

TEST(Reduction, GradientsOverEverything) {
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 3, 2}, Shape{5}, Shape{1}, Shape{}}) {
    EXPECT_TRUE(gradients_agree([](std::vector<Variable>& in) { return sum(in[0]); }, {shape}))
        << shape.str();
    EXPECT_TRUE(gradients_agree([](std::vector<Variable>& in) { return mean(weighted(in[0])); }, {shape}))
        << shape.str();
  }
}

TEST(Reduction, GradientsOverSomeDimensions) {
  const std::vector<std::vector<int>> choices = {{0}, {1}, {-1}, {0, 2}, {2, 0}, {-2, -1}, {0, 1, 2}, {}};
  for (const std::vector<int>& dims : choices) {
    for (const bool keep : {false, true}) {
      const auto total = [&](std::vector<Variable>& in) { return sum(weighted(in[0]), dims, keep); };
      const auto average = [&](std::vector<Variable>& in) { return mean(in[0], dims, keep); };
      EXPECT_TRUE(gradients_agree(total, {{2, 3, 4}})) << testing::PrintToString(dims) << keep;
      EXPECT_TRUE(gradients_agree(average, {{2, 3, 4}})) << testing::PrintToString(dims) << keep;
      EXPECT_TRUE(gradients_agree(average, {{1, 1, 1}})) << testing::PrintToString(dims) << keep;
    }
  }
}

TEST(Reduction, EmptySumIsZeroEmptyMeanIsAnError) {
  const Variable x(random_tensor({0, 3}), true);
  const Variable y = sum(x, {0});
  EXPECT_EQ(y.data().to_vector(), (std::vector<double>{0, 0, 0}));
  y.backward(Tensor::ones({3}, DType::f64));
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
  EXPECT_NE(error_of([&] { mean(x); }), "no error");
}

TEST(Reduction, DimensionOutOfRange) {
  const Variable x(random_tensor({2, 3}), true);
  EXPECT_THAT(error_of([&] { sum(x, {2}); }), HasSubstr("2"));
  EXPECT_NE(error_of([&] { sum(x, {0, 0}); }), "no error");
}

}  // namespace
}  // namespace gyre
