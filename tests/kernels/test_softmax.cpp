#include <gmock/gmock.h>

#include "kernels/softmax.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::HasSubstr;

std::vector<double> reference(const Tensor& x) {
  std::vector<double> y = x.to_vector();
  const auto n = static_cast<std::size_t>(x.size(-1));
  for (std::size_t begin = 0; begin < y.size(); begin += n) {
    double maximum = -infinity, sum = 0;
    for (std::size_t i = begin; i < begin + n; ++i) maximum = std::max(maximum, y[i]);
    for (std::size_t i = begin; i < begin + n; ++i) sum += y[i] = std::exp(y[i] - maximum);
    for (std::size_t i = begin; i < begin + n; ++i) y[i] /= sum;
  }
  return y;
}

TEST(Softmax, MatchesLoops) {
  everywhere([] {
    for (const Shape& shape : {Shape{5}, Shape{1, 1}, Shape{40, 10}, Shape{3, 7, 16}, Shape{9, 17},
                               Shape{4, 100}, Shape{33, 33}, Shape{70, 257}})
      for (const DType dtype : {DType::f64, DType::f32}) {
        const Tensor x = random(shape, dtype, 40, 4.0);
        for (const Tensor& view : views(x)) {
          poison(x.numel(), dtype);
          expect_values(softmax_forward(view), reference(x), dtype == DType::f64 ? 1e-14 : 1e-6);
        }
      }
  });
}

TEST(Softmax, ExtremeLogits) {
  const Tensor x = Tensor::from({1e4, -1e4, 0.0,       1e4, -1e4, -1e4, -1e4, -1e4, 1e30, -1e30, 0.0, 0.0,
                                 0.0, 0.0,  -infinity, 1.0, nan,  1.0,  2.0,  3.0,  1.0,  2.0,   3.0, 4.0},
                                {6, 4});
  everywhere([&] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor y = softmax_forward(x.to(dtype));
      expect_values(y.slice(0, 0, 3), {0.5, 0, 0, 0.5, 0.25, 0.25, 0.25, 0.25, 1, 0, 0, 0}, 1e-7);
      EXPECT_EQ(y.at({3, 2}), 0);
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(y.at({4, i})));
      expect_values(y.select(0, 5), reference(x.select(0, 5)), 2e-7);  // a NaN stays in its row
    }
  });
}

TEST(Softmax, SmallProbabilitiesKeepTheirDigits) {
  everywhere([] {
    std::vector<float> logits;
    for (int i = 0; i < 80; ++i) logits.push_back(static_cast<float>(-i));
    const Tensor x = Tensor::from(logits, {1, 80});
    const std::vector<double> y = softmax_forward(x).to_vector(), wanted = reference(x);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i] / wanted[i], 1, 1e-6) << i;
  });
}

TEST(SoftmaxBackward, MatchesTheJacobian) {
  everywhere([] {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{40, 10}, Shape{5, 16}, Shape{9, 17}, Shape{2, 3, 33}, Shape{70, 131}})
      for (const DType dtype : {DType::f64, DType::f32}) {
        const Tensor y = softmax_forward(random(shape, dtype, 41, 2.0)), grad = random(shape, dtype, 42);
        const std::vector<double> p = y.to_vector(), g = grad.to_vector();
        std::vector<double> wanted(p.size());
        const auto n = static_cast<std::size_t>(shape[-1]);
        for (std::size_t i = 0; i < p.size(); ++i) {
          const std::size_t begin = i / n * n;
          for (std::size_t j = begin; j < begin + n; ++j)
            wanted[i] += (i == j ? p[i] - p[i] * p[j] : -p[i] * p[j]) * g[j];
        }
        const std::vector<Tensor> ys = views(y), grads = views(grad);
        for (std::size_t i = 0; i < ys.size(); ++i) {
          poison(y.numel(), dtype);
          expect_values(softmax_backward(ys[i], grads[ys.size() - 1 - i]), wanted, tolerance(dtype));
        }
      }
  });
}

TEST(Softmax, EmptyAndErrors) {
  EXPECT_EQ(softmax_forward(Tensor::empty({0, 5})).shape(), (Shape{0, 5}));
  EXPECT_EQ(softmax_forward(Tensor::empty({5, 0})).shape(), (Shape{5, 0}));
  EXPECT_EQ(softmax_backward(Tensor::empty({0, 5}), Tensor::empty({0, 5})).shape(), (Shape{0, 5}));
  EXPECT_THAT(message_of<ShapeError>([] { softmax_forward(Tensor::ones({})); }), HasSubstr("rank 1 or more"));
  EXPECT_THAT(message_of<DTypeError>([] { softmax_forward(Tensor::arange(3)); }), HasSubstr("not i64"));
  EXPECT_THROW(softmax_backward(Tensor::ones({2, 3}), Tensor::ones({3, 2})), ShapeError);
}

}  // namespace
}  // namespace gyre::kernels
