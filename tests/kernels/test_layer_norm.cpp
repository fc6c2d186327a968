#include <gmock/gmock.h>

#include "kernels/elementwise.h"
#include "kernels/layer_norm.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct Values {
  std::vector<double> y, mean, rstd, dx, dgain, dbias;
};

/// Forward and backward by the textbook formulas.
Values reference(const Tensor& x, const Tensor& gain, const Tensor& bias, const Tensor& grad, int repeat,
                 double eps) {
  const auto rows = static_cast<std::size_t>(x.size(0)), n = static_cast<std::size_t>(x.size(1));
  const auto tied = static_cast<std::size_t>(repeat);
  const std::vector<double> v = x.to_vector(), g = gain.to_vector(), b = bias.to_vector(),
                            d = grad.to_vector();
  const double count = static_cast<double>(n);
  Values r{v, std::vector<double>(rows),     std::vector<double>(rows),
           v, std::vector<double>(g.size()), std::vector<double>(g.size())};
  for (std::size_t i = 0; i < rows; ++i) {
    double mean = 0, variance = 0, sum = 0, dot = 0;
    for (std::size_t j = 0; j < n; ++j) mean += v[i * n + j] / count;
    for (std::size_t j = 0; j < n; ++j) variance += (v[i * n + j] - mean) * (v[i * n + j] - mean) / count;
    const double rstd = 1 / std::sqrt(variance + eps);
    r.mean[i] = mean;
    r.rstd[i] = rstd;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j, c = j / tied;
      const double z = (v[at] - mean) * rstd;
      r.y[at] = z * g[c] + b[c];
      r.dgain[c] += d[at] * z;
      r.dbias[c] += d[at];
      sum += d[at] * g[c] / count;
      dot += d[at] * g[c] * z / count;
    }
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j;
      r.dx[at] = rstd * (d[at] * g[j / tied] - sum - (v[at] - mean) * rstd * dot);
    }
  }
  return r;
}

void check(std::int64_t rows, std::int64_t channels, int repeat, DType dtype) {
  SCOPED_TRACE(fmt::format("[{}, {} * {}] {}", rows, channels, repeat, dtype));
  const std::int64_t n = channels * repeat;
  const Tensor x = random({rows, n}, dtype, 50, 2.0), grad = random({rows, n}, dtype, 51);
  const Tensor gain = random({channels}, dtype, 52), bias = random({channels}, dtype, 53);
  const Values wanted = reference(x, gain, bias, grad, repeat, 1e-5);
  const double limit = dtype == DType::f64 ? 1e-12 : 5e-6;
  const double sum_limit = limit * std::max(1.0, std::sqrt(static_cast<double>(rows * repeat)) / 8);
  const std::vector<Tensor> xs = views(x), grads = views(grad);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    poison(x.numel(), dtype);
    const LayerNormResult result = layer_norm_forward(xs[i], gain, bias, repeat, 1e-5);
    expect_values(result.y, wanted.y, limit);
    expect_values(result.mean, wanted.mean, limit);
    expect_values(result.rstd, wanted.rstd, limit);
    poison(x.numel(), dtype);
    const LayerNormGrads grads_of =
        layer_norm_backward(xs[i], gain, result.mean, result.rstd, grads[xs.size() - 1 - i], repeat);
    // A row of one or two values has a gradient near zero times a large rstd.
    expect_values(grads_of.x, wanted.dx, limit * (n < 4 ? 400 : 1));
    expect_values(grads_of.gain, wanted.dgain, sum_limit);
    expect_values(grads_of.bias, wanted.dbias, sum_limit);
  }
}

TEST(LayerNorm, MatchesTheFormulas) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      for (const std::int64_t channels : {1, 2, 3, 8, 15, 16, 17, 33, 64, 100})
        for (const int repeat : {1, 2, 4, 8}) check(5, channels, repeat, dtype);
      check(1, 32, 4, dtype);
      check(700, 36, 1, dtype);
      check(1030, 5, 4, dtype);
    }
  });
}

/// The fused form gives the bits of its parts.
TEST(LayerNorm, AddsAResidual) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32})
      for (const auto& [rows, n] :
           {std::pair{5, 1}, std::pair{5, 15}, std::pair{6, 16}, std::pair{3, 100}, std::pair{900, 36}}) {
        SCOPED_TRACE(fmt::format("[{}, {}] {}", rows, n, dtype));
        const Tensor x = random({rows, n}, dtype, 60), r = random({rows, n}, dtype, 61),
                     grad = random({rows, n}, dtype, 62), outer = random({rows, n}, dtype, 63),
                     gain = random({n}, dtype, 64), bias = random({n}, dtype, 65);
        const Tensor sum = binary(BinaryOp::add, x, r);
        const LayerNormResult norm = layer_norm_forward(sum, gain, bias, 1, 1e-5);
        const LayerNormGrads back = layer_norm_backward(sum, gain, norm.mean, norm.rstd, grad, 1);
        for (std::size_t i = 0; i < 3; ++i) {
          poison(x.numel(), dtype);
          const AddLayerNormResult got =
              add_layer_norm_forward(views(x)[i], views(r)[2 - i], gain, bias, 1, 1e-5);
          EXPECT_EQ(got.sum.to_vector(), sum.to_vector());
          EXPECT_EQ(got.y.to_vector(), norm.y.to_vector());
          EXPECT_EQ(got.mean.to_vector(), norm.mean.to_vector());
          EXPECT_EQ(got.rstd.to_vector(), norm.rstd.to_vector());
          poison(x.numel(), dtype);
          const AddLayerNormGrads with = add_layer_norm_backward(got.sum, gain, got.mean, got.rstd,
                                                                 views(grad)[i], views(outer)[2 - i], 1);
          // Where products and sums contract, one rounding less.
          expect_values(with.x, binary(BinaryOp::add, back.x, outer).to_vector(),
                        dtype == DType::f64 ? 1e-14 : 2e-6);
          EXPECT_EQ(with.r.to_vector(), with.x.to_vector());
          EXPECT_EQ(with.gain.to_vector(), back.gain.to_vector());
          EXPECT_EQ(with.bias.to_vector(), back.bias.to_vector());
          const AddLayerNormGrads alone =
              add_layer_norm_backward(got.sum, gain, got.mean, got.rstd, views(grad)[i], Tensor(), 1);
          EXPECT_EQ(alone.x.to_vector(), back.x.to_vector());
        }
      }
  });
}

TEST(LayerNorm, LargeMeanKeepsItsDigits) {
  const std::int64_t n = 200;
  Tensor x = random({8, n}, DType::f32, 54);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] += 1e4F;
  const Tensor gain = Tensor::ones({n}), bias = Tensor::zeros({n});
  const Values wanted = reference(x, gain, bias, x, 1, 1e-5);
  everywhere([&] {
    const LayerNormResult result = layer_norm_forward(x, gain, bias, 1, 1e-5);
    expect_values(result.y, wanted.y, 2e-6);
    expect_values(result.rstd, wanted.rstd, 2e-6);
  });
}

TEST(LayerNorm, ConstantRowGivesTheBias) {
  everywhere([] {
    const Tensor bias = random({6}, DType::f32, 55), gain = Tensor::ones({6});
    const Tensor x = Tensor::full({2, 6}, 0.1);
    const LayerNormResult result = layer_norm_forward(x, gain, bias, 1, 1e-5);
    std::vector<double> wanted = bias.to_vector();
    wanted.insert(wanted.end(), wanted.begin(), wanted.begin() + 6);
    expect_values(result.y, wanted, 1e-5);
    const LayerNormGrads grads =
        layer_norm_backward(x, gain, result.mean, result.rstd, Tensor::ones({2, 6}), 1);
    EXPECT_THAT(grads.bias.to_vector(), Each(2));
    expect_values(grads.x, std::vector<double>(12, 0.0), 1e-4);
  });
}

TEST(LayerNorm, StridedGainAndRepeatability) {
  const ThreadCount guard(2);
  const Tensor x = random({900, 24}, DType::f32, 56), grad = random({900, 24}, DType::f32, 57);
  const Tensor wide = random({24}, DType::f32, 58), gain = wide.slice(0, 0, 24, 2),
               bias = Tensor::zeros({12});
  const LayerNormResult result = layer_norm_forward(x, gain, bias, 2, 1e-6);
  EXPECT_EQ(result.y.to_vector(), layer_norm_forward(x, gain.clone(), bias, 2, 1e-6).y.to_vector());
  const auto backward = [&] { return layer_norm_backward(x, gain, result.mean, result.rstd, grad, 2); };
  EXPECT_EQ(backward().gain.to_vector(), backward().gain.to_vector());
  EXPECT_EQ(backward().bias.to_vector(), backward().bias.to_vector());
}

TEST(LayerNorm, NoRows) {
  const Tensor none = Tensor::empty({0, 6}), row = Tensor::ones({6}), empty = Tensor::empty({0});
  EXPECT_EQ(layer_norm_forward(none, row, row, 1, 1e-5).y.shape(), (Shape{0, 6}));
  poison(6, DType::f32);
  const LayerNormGrads grads = layer_norm_backward(none, row, empty, empty, none, 1);
  EXPECT_THAT(grads.gain.to_vector(), Each(0));
  EXPECT_THAT(grads.bias.to_vector(), Each(0));
}

TEST(LayerNorm, Errors) {
  const Tensor x = Tensor::ones({2, 6}), gain = Tensor::ones({3});
  EXPECT_THAT(message_of<ShapeError>([&] { layer_norm_forward(x, gain, gain, 4, 1e-5); }),
              HasSubstr("x [2, 6] is not [N, C * 4] for gain [3]"));
  EXPECT_THAT(message_of<ValueError>([&] { layer_norm_forward(x, gain, gain, 0, 1e-5); }),
              HasSubstr("not 0"));
  EXPECT_THAT(message_of<ValueError>([&] { layer_norm_forward(x, gain, gain, 2, -1.0); }), HasSubstr("eps"));
  EXPECT_THROW(layer_norm_forward(x, gain, Tensor::ones({2}), 2, 1e-5), ShapeError);
  EXPECT_THROW(layer_norm_forward(x, gain.to(DType::f64), gain, 2, 1e-5), DTypeError);
  EXPECT_THROW(layer_norm_backward(x, gain, Tensor::ones({3}), Tensor::ones({2}), x, 2), ShapeError);
  EXPECT_THROW(add_layer_norm_forward(x, Tensor::ones({6}), gain, gain, 2, 1e-5), ShapeError);
  EXPECT_THAT(message_of<DTypeError>([&] {
                add_layer_norm_forward(x, Tensor::ones({2, 6}, DType::f16), gain, gain, 2, 1e-5);
              }),
              HasSubstr("add_layer_norm takes no f16 beside f32 on cpu"));
  EXPECT_THROW(layer_norm_forward(x, gain, gain, 2, 1e-5, DType::bf16), DTypeError);
  const Tensor two = Tensor::ones({2});
  EXPECT_THROW(add_layer_norm_backward(x, gain, two, two, x, Tensor::ones({2, 3}), 2), ShapeError);
  EXPECT_THROW(add_layer_norm_backward(x, gain, two, two, x, x.to(DType::f64), 2), DTypeError);
  EXPECT_THROW(layer_norm_backward(x, gain, Tensor::ones({2}), Tensor::ones({2}), gain, 2), ShapeError);
}

}  // namespace
}  // namespace gyre::kernels
