#include <gmock/gmock.h>

#include "kernels/attention.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::HasSubstr;

struct Values {
  std::vector<double> y, probabilities, gradient, bias;
};

/// Forward and backward by plain loops over qkv [B, L, 3, H, E].
Values reference(const Tensor& qkv, const Tensor& grad, const ScoreBias& added = {}) {
  const auto extent = [&](int dim) { return static_cast<std::size_t>(qkv.size(dim)); };
  const std::size_t images = extent(0), length = extent(1), heads = extent(3), width = extent(4);
  const std::vector<double> x = qkv.to_vector(), g = grad.to_vector();
  Values r{std::vector<double>(g.size()), std::vector<double>(images * heads * length * length),
           std::vector<double>(x.size()), std::vector<double>(heads * length * length)};
  const std::vector<double> bias = added.bias.defined() ? added.bias.to_vector() : r.bias;
  const std::vector<double> mask =
      added.mask.defined() ? added.mask.to_vector() : std::vector<double>(length * length);
  const std::size_t windows = mask.size() / (length * length);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  for (std::size_t b = 0; b < images; ++b)
    for (std::size_t h = 0; h < heads; ++h) {
      const auto in = [&](std::size_t i, std::size_t part, std::size_t e) {
        return (((b * length + i) * 3 + part) * heads + h) * width + e;
      };
      const auto out = [&](std::size_t i, std::size_t e) {
        return ((b * length + i) * heads + h) * width + e;
      };
      double* p = r.probabilities.data() + (b * heads + h) * length * length;
      for (std::size_t i = 0; i < length; ++i) {
        double maximum = -infinity, sum = 0;
        double* row = p + i * length;
        for (std::size_t j = 0; j < length; ++j) {
          row[j] = bias[(h * length + i) * length + j] + mask[(b % windows * length + i) * length + j];
          for (std::size_t e = 0; e < width; ++e) row[j] += scale * x[in(i, 0, e)] * x[in(j, 1, e)];
          maximum = std::max(maximum, row[j]);
        }
        for (std::size_t j = 0; j < length; ++j) sum += row[j] = std::exp(row[j] - maximum);
        double mixed = 0;
        std::vector<double> dp(length);
        for (std::size_t j = 0; j < length; ++j) {
          row[j] /= sum;
          for (std::size_t e = 0; e < width; ++e) {
            r.y[out(i, e)] += row[j] * x[in(j, 2, e)];
            r.gradient[in(j, 2, e)] += row[j] * g[out(i, e)];
            dp[j] += g[out(i, e)] * x[in(j, 2, e)];
          }
          mixed += row[j] * dp[j];
        }
        for (std::size_t j = 0; j < length; ++j) {
          r.bias[(h * length + i) * length + j] += row[j] * (dp[j] - mixed);
          const double ds = scale * row[j] * (dp[j] - mixed);
          for (std::size_t e = 0; e < width; ++e) {
            r.gradient[in(i, 0, e)] += ds * x[in(j, 1, e)];
            r.gradient[in(j, 1, e)] += ds * x[in(i, 0, e)];
          }
        }
      }
    }
  return r;
}

void check(const Shape& shape, DType dtype, bool strided) {
  SCOPED_TRACE(shape.str());
  const Tensor qkv = random(shape, dtype, 70),
               grad = random({shape[0], shape[1], shape[3] * shape[4]}, dtype, 71);
  const Values wanted = reference(qkv, grad);
  const double limit = dtype == DType::f64 ? 1e-12 : 3e-6;
  std::vector<Tensor> inputs{qkv}, grads{grad};
  if (strided) inputs = views(qkv), grads = views(grad);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    poison(grad.numel(), dtype);
    poison(static_cast<std::int64_t>(wanted.probabilities.size()), dtype);
    const AttentionResult result = attention_forward(inputs[i], true);
    expect_values(result.y, wanted.y, limit);
    expect_values(result.probabilities, wanted.probabilities, limit);
    const AttentionResult lean = attention_forward(inputs[i], false);
    EXPECT_FALSE(lean.probabilities.defined());
    EXPECT_EQ(lean.y.to_vector(), result.y.to_vector());
    poison(qkv.numel(), dtype);
    expect_values(attention_backward(inputs[i], result, grads[grads.size() - 1 - i]),
                  wanted.gradient, limit);
  }
}

TEST(Attention, MatchesLoops) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      for (const std::int64_t length : {1, 2, 5, 15, 16, 17, 33, 47, 50})
        for (const std::int64_t width : {1, 4, 5, 16, 17, 40}) check({2, length, 3, 2, width}, dtype, false);
      check({3, 9, 3, 2, 6}, dtype, true);
      check({1, 65, 3, 1, 128}, dtype, true);
      check({1, 197, 3, 1, 32}, dtype, false);
    }
  });
}

/// Some keys hidden from some queries, none from itself.
Tensor random_mask(std::int64_t windows, std::int64_t length, DType dtype) {
  std::vector<double> values = random({windows, length, length}, DType::f64, 76).to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) % (length * length);
    values[i] = values[i] > 0.3 && place / length != place % length ? -infinity : 0;
  }
  return Tensor::from(values, {windows, length, length}).to(dtype);
}

void check_windows(const Shape& shape, std::int64_t windows, DType dtype) {
  SCOPED_TRACE(shape.str());
  const std::int64_t length = shape[1], heads = shape[3];
  const Tensor qkv = random(shape, dtype, 70), grad = random({shape[0], length, heads * shape[4]}, dtype, 71);
  const Tensor bias = random({heads, length, length}, dtype, 75);
  const Tensor mask = windows > 0 ? random_mask(windows, length, dtype) : Tensor();
  const Values wanted = reference(qkv, grad, {bias, mask});
  const double limit = dtype == DType::f64 ? 1e-12 : 3e-6;
  const Tensor transposed = bias.transpose(1, 2).contiguous().transpose(1, 2);
  for (const Tensor& given : {bias, transposed}) {
    poison(grad.numel(), dtype);
    const AttentionResult result = attention_forward(qkv, true, {given, mask});
    expect_values(result.y, wanted.y, limit);
    expect_values(result.probabilities, wanted.probabilities, limit);
    poison(qkv.numel(), dtype);
    Tensor bias_gradient;
    expect_values(attention_backward(qkv, result, grad, &bias_gradient), wanted.gradient,
                  limit);
    ASSERT_EQ(bias_gradient.shape(), bias.shape());
    expect_values(bias_gradient, wanted.bias, limit);
  }
}

TEST(Attention, WindowsMatchLoops) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      // One head for many images, and one task for many heads.
      for (const std::int64_t length : {1, 4, 16, 17}) check_windows({6, length, 3, 5, 4}, 3, dtype);
      check_windows({1, 49, 3, 2, 32}, 0, dtype);
      check_windows({8, 49, 3, 3, 24}, 4, dtype);
      check_windows({80, 16, 3, 1, 8}, 4, dtype);
    }
  });
}

TEST(Attention, HiddenKeysDoNotMatter) {
  // The second half of the keys hidden: whatever stands there leaves the result alone, and gets no gradient.
  Tensor qkv = random({2, 6, 3, 1, 4}, DType::f32, 77), mask = Tensor::zeros({1, 6, 6});
  mask.slice(2, 3, 6).fill_(-infinity);
  const AttentionResult result = attention_forward(qkv, true, {{}, mask});
  Tensor other = qkv.clone();
  other.slice(1, 3, 6).slice(2, 1, 3).fill_(1e3);
  EXPECT_EQ(attention_forward(other, false, {{}, mask}).y.to_vector(), result.y.to_vector());
  const Tensor gradient = attention_backward(qkv, result, result.y);
  for (const double value : gradient.slice(1, 3, 6).slice(2, 1, 3).to_vector()) EXPECT_EQ(value, 0);
}

TEST(Attention, RefusesBiasesThatDoNotFit) {
  const Tensor qkv = Tensor::ones({3, 4, 3, 2, 8});
  const auto refusal = [&](const Tensor& bias, const Tensor& mask) {
    return message_of<ShapeError>([&] { attention_forward(qkv, false, {bias, mask}); });
  };
  EXPECT_THAT(refusal(Tensor::ones({3, 4, 4}), {}), HasSubstr("[2, 4, 4]"));
  EXPECT_THAT(refusal({}, Tensor::ones({2, 4, 4})),
              HasSubstr("3 images are not whole pictures of 2 windows"));
  EXPECT_THAT(refusal({}, Tensor::ones({4, 4})), HasSubstr("[1, 4, 4]"));
  EXPECT_THROW(attention_forward(qkv, false, {Tensor::ones({2, 4, 4}, DType::f64), {}}), DTypeError);
}

TEST(Attention, GradientMatchesDifferences) {
  Tensor qkv = random({1, 4, 3, 1, 3}, DType::f64, 72);
  const Tensor grad = random({1, 4, 3}, DType::f64, 73);
  const auto loss = [&] {
    const std::vector<double> y = attention_forward(qkv, false).y.to_vector(), g = grad.to_vector();
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * g[i];
    return sum;
  };
  const AttentionResult result = attention_forward(qkv, true);
  const Tensor gradient = attention_backward(qkv, result, grad);
  for (std::int64_t i = 0; i < qkv.numel(); ++i) {
    constexpr double step = 1e-5;
    const double value = qkv.data<double>()[i];
    qkv.mutable_data<double>()[i] = value + step;
    const double up = loss();
    qkv.mutable_data<double>()[i] = value - step;
    const double down = loss();
    qkv.mutable_data<double>()[i] = value;
    EXPECT_NEAR(gradient.data<double>()[i], (up - down) / (2 * step), 1e-8);
  }
}

TEST(Attention, LargeScoresStayFinite) {
  everywhere([] {
    const Tensor qkv = random({1, 20, 3, 1, 8}, DType::f32, 74, 100.0);
    const AttentionResult result = attention_forward(qkv, true);
    for (const double value : result.y.to_vector()) ASSERT_TRUE(std::isfinite(value));
    for (std::int64_t i = 0; i < 20; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < 20; ++j) sum += result.probabilities.at({0, 0, i, j});
      ASSERT_NEAR(sum, 1, 1e-6);
    }
  });
}

TEST(Attention, EmptyAndErrors) {
  const Tensor none = Tensor::empty({0, 4, 3, 2, 8});
  const AttentionResult result = attention_forward(none, true);
  EXPECT_EQ(result.y.shape(), (Shape{0, 4, 16}));
  EXPECT_EQ(result.probabilities.shape(), (Shape{0, 2, 4, 4}));
  EXPECT_EQ(attention_backward(none, result, result.y).shape(), none.shape());
  EXPECT_THAT(message_of<ShapeError>([] {
                attention_forward(Tensor::ones({1, 4, 2, 2, 8}), true);
              }),
              HasSubstr("[B, L, 3, H, E] with E >= 1, not [1, 4, 2, 2, 8]"));
  EXPECT_THROW(attention_forward(Tensor::ones({1, 4, 3, 2, 8}).to(DType::i64), true), DTypeError);
  const Tensor qkv = Tensor::ones({1, 4, 3, 2, 8}), y = Tensor::ones({1, 4, 16}),
               p = Tensor::ones({1, 2, 4, 4});
  EXPECT_THROW(attention_backward(qkv, {y, Tensor::ones({1, 2, 4, 5}), {}}, y), ShapeError);
  EXPECT_THROW(attention_backward(qkv, {y, p, {}}, Tensor::ones({1, 4, 15})), ShapeError);
  EXPECT_THROW(attention_backward(qkv, {y, p, {}}, y.to(DType::f64)), DTypeError);
  EXPECT_THAT(message_of<ValueError>([&] { attention_backward(qkv, attention_forward(qkv, false), y); }),
              HasSubstr("the forward kept nothing"));
}

}  // namespace
}  // namespace gyre::kernels
