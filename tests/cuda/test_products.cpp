#include <gmock/gmock.h>

#include <array>

#include "kernels/attention.h"
#include "kernels/bias_gelu.h"
#include "kernels/linear.h"
#include "kernels/matmul.h"
#include "tests/cuda/compare.h"

namespace gyre::kernels {
namespace {

using ::testing::HasSubstr;

TEST(CudaMatmul, BatchesAndTransposes) {
  for (const auto& [m, n, k] :
       {std::array{5, 7, 9}, std::array{1, 33, 4}, std::array{6, 5, 0}, std::array{0, 3, 2}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Shape a = ta ? Shape{2, 3, k, m} : Shape{2, 3, m, k}, b = tb ? Shape{n, k} : Shape{k, n};
        Shape batched{2, 3};
        for (const std::int64_t extent : b) batched.push_back(extent);
        for (const Shape& right : {b, batched})
          compare([ta, tb](const Tensors& x) -> Tensors { return {matmul(x[0], x[1], ta, tb)}; },
                  {normal(a, 1), normal(right, 2)}, 1e-5);
      }
}

TEST(CudaLinear, ForwardAndBackward) {
  for (const auto& [n, m, k] :
       {std::array{7, 5, 9}, std::array{40, 64, 32}, std::array{3, 4, 0}, std::array{0, 4, 5}})
    for (const bool bias : {false, true})
      compare(
          [](const Tensors& x) -> Tensors {
            const LinearGrads grads = linear_backward(x[0], x[1], x[3], true, true, true);
            return {linear_forward(x[0], x[1], x[2]), grads.x, grads.w, grads.b};
          },
          {normal({n, k}, 3), normal({m, k}, 4), bias ? normal({m}, 5) : Tensor(), normal({n, m}, 6)}, 2e-5);
}

TEST(CudaLinear, BackThroughGelu) {
  for (const auto& [n, m, k] : {std::array{7, 5, 9}, std::array{70, 64, 32}, std::array{0, 4, 5}})
    for (const bool bias : {false, true})
      compare(
          [bias](const Tensors& x) -> Tensors {
            const LinearGrads grads = linear_backward(x[0], x[1], x[2], true, true, bias, nullptr, x[3]);
            return {grads.x, grads.w, grads.b};
          },
          {normal({n, k}, 3), normal({m, k}, 4), normal({n, m}, 6), normal({n, m}, 7, 2)}, 5e-5, 32);
}

TEST(CudaBiasGelu, MatchesTheCpu) {
  for (const auto& [n, c, repeat] : {std::array{9, 5, 1}, std::array{130, 16, 8}, std::array{0, 4, 2}})
    compare(
        [repeat = repeat](const Tensors& x) -> Tensors {
          const BiasGeluGrads grads = bias_gelu_backward(x[0], x[1], repeat);
          return {grads.x, grads.bias};
        },
        {normal({n, c * repeat}, 30, 2), normal({n, c * repeat}, 31)}, 2e-5);
}

/// A mask of zeros and some -∞, none on the diagonal.
Tensor random_mask(std::int64_t windows, std::int64_t length) {
  std::vector<double> values = normal({windows, length, length}, 7).to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) % (length * length);
    values[i] = values[i] > 0.3 && place / length != place % length ? -infinity : 0;
  }
  return Tensor::from(values, {windows, length, length});
}

TEST(CudaAttention, ForwardAndBackward) {
  for (const Shape& shape :
       {Shape{2, 5, 3, 2, 4}, Shape{1, 70, 3, 1, 32}, Shape{1, 17, 3, 2, 72}, Shape{0, 4, 3, 2, 8}})
    compare(
        [](const Tensors& x) -> Tensors {
          const AttentionResult result = attention_forward(x[0], true);
          return {result.y, attention_backward(x[0], result, x[1]), attention_forward(x[0], false).y};
        },
        {normal(shape, 8), normal({shape[0], shape[1], shape[3] * shape[4]}, 9)}, 1e-5);
}

TEST(CudaAttention, Windows) {
  for (const auto& [images, length, heads, width, windows] :
       {std::array{6, 16, 2, 4, 3}, std::array{4, 49, 1, 24, 2}, std::array{12, 9, 3, 5, 1}}) {
    compare(
        [](const Tensors& x) -> Tensors {
          const DType wide = wide_type(x[0].dtype());
          const ScoreBias added{x[1].to(wide), x[2].to(wide)};
          const AttentionResult result = attention_forward(x[0], true, added);
          Tensor bias_gradient;
          Tensor gradient = attention_backward(x[0], result, x[3], &bias_gradient, added);
          return {result.y, gradient, bias_gradient};
        },
        {normal({images, length, 3, heads, width}, 10), normal({heads, length, length}, 11),
         random_mask(windows, length), normal({images, length, heads * width}, 12)},
        2e-5, 4);
  }
}

TEST(CudaAttention, RefusesHeadsThatAreTooWide) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  const Tensor qkv = Tensor::zeros({1, 2, 3, 1, 257}, DType::f32, gpu);
  EXPECT_THAT(message_of<DeviceError>([&] { attention_forward(qkv, false); }),
              HasSubstr("heads of up to 256 channels in f32, not 257"));
}

}  // namespace
}  // namespace gyre::kernels
