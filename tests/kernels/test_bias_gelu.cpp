#include "kernels/bias_gelu.h"

#include <gmock/gmock.h>

#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(BiasGelu, MatchesTheFormula) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32})
      for (const auto& [rows, channels, repeat] :
           {std::tuple{5, 7, 1}, std::tuple{40, 3, 4}, std::tuple{1, 1, 8}, std::tuple{900, 4, 2}}) {
        SCOPED_TRACE(fmt::format("[{}, {} * {}] {}", rows, channels, repeat, dtype));
        const Tensor before = random({rows, channels * repeat}, dtype, 70, 2),
                     grad = random({rows, channels * repeat}, dtype, 71);
        std::vector<double> x = before.to_vector(), wanted = grad.to_vector();
        std::vector<double> bias(static_cast<std::size_t>(channels));
        for (std::size_t i = 0; i < x.size(); ++i) {
          wanted[i] *= 0.5 * std::erfc(-x[i] / std::sqrt(2.0)) +
                       x[i] * std::exp(-0.5 * x[i] * x[i]) / std::sqrt(2 * M_PI);
          bias[i / static_cast<std::size_t>(repeat) % bias.size()] += wanted[i];
        }
        for (std::size_t i = 0; i < 3; ++i) {
          poison(before.numel(), dtype);
          const BiasGeluGrads got = bias_gelu_backward(views(before)[i], views(grad)[2 - i], repeat);
          expect_values(got.x, wanted, tolerance(dtype) * 2);
          expect_values(got.bias, bias, tolerance(dtype) * std::sqrt(rows * repeat));
        }
      }
  });
}

TEST(BiasGelu, NoRows) {
  const BiasGeluGrads grads = bias_gelu_backward(Tensor::empty({0, 6}), Tensor::empty({0, 6}), 2);
  EXPECT_EQ(grads.x.shape(), (Shape{0, 6}));
  EXPECT_EQ(grads.bias.shape(), (Shape{3}));
  EXPECT_THAT(grads.bias.to_vector(), Each(0));
}

TEST(BiasGelu, Errors) {
  const Tensor x = Tensor::ones({2, 6});
  EXPECT_THAT(message_of<ShapeError>([&] { bias_gelu_backward(x, x, 4); }),
              HasSubstr("bias_gelu_backward: [2, 6] is not [N, C * 4]"));
  EXPECT_THROW(bias_gelu_backward(x, Tensor::ones({2, 3}), 1), ShapeError);
  EXPECT_THROW(bias_gelu_backward(x, x.to(DType::f64), 1), DTypeError);
  EXPECT_THROW(bias_gelu_backward(x.to(DType::f16), x.to(DType::f16), 1), DTypeError);
}

}  // namespace
}  // namespace gyre::kernels
