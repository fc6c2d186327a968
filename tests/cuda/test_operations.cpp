#include <gmock/gmock.h>

#include <array>

#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/gather.h"
#include "kernels/layer_norm.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "tests/cuda/compare.h"

namespace gyre::kernels {
namespace {

using ::testing::HasSubstr;

TEST(CudaElementwise, Binary) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{7, 5}, {7, 5}}, {{4, 8}, {8}},       {{8}, {3, 4, 8}},
                                                    {{3, 1}, {3, 6}}, {{2, 1, 5}, {4, 1}}, {{1}, {1}},
                                                    {{0, 4}, {4}},    {{33, 64}, {33, 1}}};
  for (const auto& [a, b] : shapes)
    for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div}) {
      SCOPED_TRACE(fmt::format("{} and {}", a, b));
      const Tensor divisor = affine(unary(UnaryOp::exp, normal(b, 2)), 1, 1);
      compare([op](const Tensors& x) -> Tensors { return {binary(op, x[0], x[1])}; },
              {normal(a, 1), divisor});
    }
}

TEST(CudaElementwise, Unary) {
  for (const UnaryOp op :
       {UnaryOp::neg, UnaryOp::exp, UnaryOp::log, UnaryOp::sqrt, UnaryOp::tanh, UnaryOp::relu, UnaryOp::gelu})
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5, 7}, Shape{3, 4, 32}}) {
      SCOPED_TRACE(fmt::format("operation {} of {}", static_cast<int>(op), shape));
      const bool positive = op == UnaryOp::log || op == UnaryOp::sqrt;
      const Tensor input =
          positive ? affine(unary(UnaryOp::exp, normal(shape, 3)), 1, 0.5) : normal(shape, 3);
      compare(
          [op](const Tensors& x) -> Tensors {
            const Tensor y = unary(op, x[0]);
            return {y, unary_backward(op, x[0], y, x[1])};
          },
          {input, normal(shape, 4)}, 3e-6, 4);
    }
}

TEST(CudaElementwise, AffineAndAddInto) {
  compare(
      [](const Tensors& x) -> Tensors {
        Tensor sum = x[1].clone(), strided = x[1].clone().transpose(0, 1);
        add_into(sum, x[0], -0.5);
        add_into(strided, x[0].transpose(0, 1), 2);
        return {affine(x[0], 3, -1), sum, strided};
      },
      {normal({6, 9}, 5), normal({6, 9}, 6)});
}

TEST(CudaReduce, SumAndMean) {
  for (const Shape& shape :
       {Shape{5, 6, 7}, Shape{3, 1, 40}, Shape{2, 300, 5}, Shape{0, 3, 2}, Shape{3, 0, 2}})
    for (const auto& dims : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1}, {0, 2}, {0, 1, 2}, {}}) {
      SCOPED_TRACE(fmt::format("{}, {} dimensions", shape, dims.size()));
      compare(
          [&dims](const Tensors& x) -> Tensors {
            Tensors result{sum(x[0], dims, true)};
            if (x[0].numel() > 0) result.push_back(mean(x[0], dims, false));
            return result;
          },
          {normal(shape, 7)}, 2e-5);
    }
  compare([](const Tensors& x) -> Tensors { return {sum_to(x[0], {6, 1})}; }, {normal({3, 6, 40}, 8)}, 1e-5);
}

TEST(CudaReduce, MeansOfF16DoNotOverflow) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  const Tensor x = Tensor::full({3, 1000}, 200, DType::f16, gpu);
  EXPECT_THAT(mean(x, std::array{1}, false).to_vector(), testing::Each(200));
}

TEST(CudaReduce, Argmax) {
  const Tensor x = normal({9, 70}, 9);
  for (const int view : {0, 1, 2}) EXPECT_EQ(argmax_rows(on_cuda(x, view)), argmax_rows(x));
  EXPECT_TRUE(argmax_rows(Tensor::zeros({0, 3}, DType::f32, gpu)).empty());
}

TEST(CudaSoftmax, ForwardAndBackward) {
  for (const Shape& shape : {Shape{4, 7}, Shape{2, 3, 64}, Shape{2, 1500}, Shape{0, 3}, Shape{5}})
    compare(
        [](const Tensors& x) -> Tensors {
          const Tensor y = softmax_forward(x[0]);
          return {y, softmax_backward(y, x[1])};
        },
        {normal(shape, 10, 3), normal(shape, 11)});
}

TEST(CudaLayerNorm, ForwardAndBackward) {
  for (const auto& [rows, channels, repeat] :
       {std::array{5, 7, 1}, std::array{9, 16, 4}, std::array{3, 300, 4}, std::array{4, 10, 3},
        std::array{0, 8, 2}}) {
    const std::int64_t n = channels * repeat;
    compare(
        [repeat = repeat](const Tensors& x) -> Tensors {
          const DType wide = wide_type(x[0].dtype());
          const Tensor gain = x[1].to(wide), bias = x[2].to(wide);
          const LayerNormResult y = layer_norm_forward(x[0], gain, bias, repeat, 1e-6);
          const LayerNormGrads grads = layer_norm_backward(x[0], gain, y.mean, y.rstd, x[3], repeat);
          return {y.y, y.mean, y.rstd, grads.x, grads.gain, grads.bias};
        },
        {normal({rows, n}, 12, 2), normal({channels}, 13), normal({channels}, 14), normal({rows, n}, 15)},
        2e-5);
  }
}

TEST(CudaLayerNorm, AddsAResidual) {
  for (const auto& [rows, channels, repeat] :
       {std::array{5, 7, 1}, std::array{9, 16, 8}, std::array{0, 8, 2}})
    for (const bool elsewhere : {false, true}) {
      const std::int64_t n = channels * repeat;
      compare(
          [repeat = repeat, elsewhere](const Tensors& x) -> Tensors {
            const DType wide = wide_type(x[0].dtype());
            const Tensor gain = x[2].to(wide), bias = x[3].to(wide);
            const AddLayerNormResult y = add_layer_norm_forward(x[0], x[1], gain, bias, repeat, 1e-6);
            const AddLayerNormGrads grads = add_layer_norm_backward(y.sum, gain, y.mean, y.rstd, x[4],
                                                                    elsewhere ? x[5] : Tensor(), repeat);
            return {y.sum, y.y, y.mean, y.rstd, grads.x, grads.r, grads.gain, grads.bias};
          },
          {normal({rows, n}, 12, 2), normal({rows, n}, 13), normal({channels}, 14), normal({channels}, 15),
           normal({rows, n}, 16), normal({rows, n}, 17)},
          2e-5, 12);
    }
}

TEST(CudaLayerNorm, SixteenBitsBesideF32) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  for (const DType half : {DType::f16, DType::bf16})
    for (const std::int64_t rows : {6, 0}) {
      SCOPED_TRACE(fmt::format("{}, {} rows", half, rows));
      const Tensor x = normal({rows, 48}, 12, 2).to(DType::f32), gain = normal({12}, 14).to(DType::f32),
                   bias = normal({12}, 15).to(DType::f32), outer = normal({rows, 48}, 17).to(DType::f32);
      const Tensor r = normal({rows, 48}, 13).to(half), grad = normal({rows, 48}, 16).to(half);
      const auto in_f64 = [](const Tensor& t) { return t.to(DType::f64); };
      const AddLayerNormResult wanted =
          add_layer_norm_forward(in_f64(x), in_f64(r), in_f64(gain), in_f64(bias), 4, 1e-6);
      const AddLayerNormResult got =
          add_layer_norm_forward(x.to(gpu), r.to(gpu), gain.to(gpu), bias.to(gpu), 4, 1e-6, half);
      EXPECT_EQ(got.sum.dtype(), DType::f32);
      EXPECT_EQ(got.y.dtype(), half);
      const double rounding = half == DType::f16 ? 0x1p-11 : 0x1p-8;
      expect_values(got.sum, wanted.sum.to_vector(), 1e-6);
      expect_values(got.y, wanted.y.to_vector(), rounding + 2e-5);
      const AddLayerNormGrads wanted_grads = add_layer_norm_backward(
          wanted.sum, in_f64(gain), wanted.mean, wanted.rstd, in_f64(grad), in_f64(outer), 4);
      const AddLayerNormGrads grads = add_layer_norm_backward(got.sum, gain.to(gpu), got.mean, got.rstd,
                                                              grad.to(gpu), outer.to(gpu), 4, half);
      EXPECT_EQ(grads.x.dtype(), DType::f32);
      EXPECT_EQ(grads.r.dtype(), half);
      expect_values(grads.x, wanted_grads.x.to_vector(), 2e-5);
      expect_values(grads.r, wanted_grads.x.to_vector(), rounding + 2e-5);
      expect_values(grads.gain, wanted_grads.gain.to_vector(), 2e-5);
      expect_values(grads.bias, wanted_grads.bias.to_vector(), 2e-5);
      const LayerNormResult plain = layer_norm_forward(got.sum, gain.to(gpu), bias.to(gpu), 4, 1e-6, half);
      EXPECT_EQ(plain.y.to_vector(), got.y.to_vector());
      const LayerNormGrads plain_grads =
          layer_norm_backward(got.sum, gain.to(gpu), plain.mean, plain.rstd, grad.to(gpu), 4);
      EXPECT_EQ(plain_grads.gain.to_vector(), grads.gain.to_vector());
    }
}

TEST(CudaLayerNorm, RefusesTypes) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  const auto ones = [](DType dtype) { return Tensor::ones({2, 4}, dtype, gpu); };
  const Tensor row = Tensor::ones({4}, DType::f32, gpu), wide_row = Tensor::ones({4}, DType::f64, gpu);
  EXPECT_THAT(message_of<DTypeError>([&] {
                add_layer_norm_forward(ones(DType::f32), ones(DType::f16), row, row, 1, 0, DType::bf16);
              }),
              HasSubstr("add_layer_norm takes no f16 beside f32 and bf16"));
  EXPECT_THAT(message_of<DTypeError>([&] {
                add_layer_norm_forward(ones(DType::f64), ones(DType::f16), wide_row, wide_row, 1, 0);
              }),
              HasSubstr("takes no f16 beside f64 on cuda:0"));
  EXPECT_THROW(layer_norm_forward(ones(DType::f16), row, row, 1, 0, DType::f32), DTypeError);
}

TEST(CudaCrossEntropy, ForwardAndBackward) {
  for (const double smoothing : {0.0, 0.1})
    compare(
        [smoothing](const Tensors& x) -> Tensors {
          const auto [loss, probabilities] = cross_entropy_forward(x[0], x[1], smoothing);
          return {loss, probabilities, cross_entropy_backward(probabilities, x[1], smoothing, x[2])};
        },
        {normal({9, 10}, 16, 2), random_index(9, 10, 17), normal({1}, 18)}, 3e-6, 0);
  compare(
      [](const Tensors& x) -> Tensors {
        const auto [loss, probabilities] = cross_entropy_soft_forward(x[0], x[1]);
        return {loss, probabilities, cross_entropy_soft_backward(probabilities, x[1], x[2])};
      },
      {normal({7, 30}, 19, 2), softmax_forward(normal({7, 30}, 20)), normal({1}, 21)}, 3e-6, 0);
}

TEST(CudaCrossEntropy, NamesLabelsOutOfRange) {
  const Tensor logits = Tensor::zeros({2, 3}, DType::f32, gpu);
  EXPECT_THAT(message_of<ValueError>([&] {
                cross_entropy_forward(logits, Tensor::from<std::int64_t>({2, 3}, {2}).to(gpu), 0);
              }),
              HasSubstr("row 1 has label 3, allowed are 0 to 2"));
  // Labels that fit once are checked anew after a change.
  Tensor labels = Tensor::from<std::int64_t>({0, 2}, {2}).to(gpu);
  cross_entropy_forward(logits, labels, 0);
  labels.fill_(7);
  EXPECT_THROW(cross_entropy_forward(logits, labels, 0), ValueError);
}

TEST(CudaGather, Columns) {
  for (const auto& [b, m, k] :
       {std::array{3, 11, 40}, std::array{4, 5, 1}, std::array{0, 3, 2}, std::array{2, 3, 0}})
    compare(
        [m = m](const Tensors& x) -> Tensors {
          return {gather(x[0], x[1]), gather_backward(x[2], x[1], m)};
        },
        {normal({b, m}, 22), random_index(k, m, 23), normal({b, k}, 24)});
}

TEST(CudaGather, ColumnsOfBytes) {
  if (gpu.is_cpu()) GTEST_SKIP() << cuda_alone;
  const Tensor bytes = Tensor::from<std::uint8_t>({1, 2, 3, 4}, {1, 4}).to(gpu);
  EXPECT_THAT(gather(bytes, Tensor::from<std::int64_t>({3, 0}, {2}).to(gpu)).to_vector(),
              testing::ElementsAre(4, 1));
}

TEST(CudaGather, FollowsTheContentsOfItsIndex) {
  Tensor index = Tensor::from<std::int64_t>({0, 0}, {2}).to(gpu);
  const Tensor grad = Tensor::ones({1, 2}, DType::f32, gpu);
  EXPECT_THAT(gather_backward(grad, index, 2).to_vector(), testing::ElementsAre(2, 0));
  index.fill_(1);
  EXPECT_THAT(gather_backward(grad, index, 2).to_vector(), testing::ElementsAre(0, 2));
  index.fill_(2);
  EXPECT_THAT(message_of<ValueError>([&] { gather_backward(grad, index, 2); }),
              HasSubstr("index 2 at position 0 lies outside [0, 2)"));
}

TEST(CudaGather, RowsAndConcat) {
  for (const std::int64_t c : {1, 5, 64})
    compare([](const Tensors& x) -> Tensors { return {gather_rows(x[0], x[1])}; },
            {normal({3, 6, c}, 25), random_index(9, 6, 26)});
  for (const int dim : {0, 1, -1})
    compare(
        [dim](const Tensors& x) -> Tensors {
          return {concat(std::array{x[0], x[0].slice(dim, 0, 1), x[0].slice(dim, 0, 0), x[0]}, dim)};
        },
        {normal({2, 3, 4}, 27)});
}

}  // namespace
}  // namespace gyre::kernels
