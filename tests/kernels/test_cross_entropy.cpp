#include <gmock/gmock.h>

#include "kernels/cross_entropy.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {
namespace {

using ::testing::HasSubstr;

Tensor random_labels(std::int64_t rows, std::int64_t classes, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::test);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < rows; ++i)
    labels.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(classes))));
  return Tensor::from(labels, {rows});
}

/// (1 - smoothing) · onehot + smoothing / K.
Tensor smooth_targets(const Tensor& labels, std::int64_t classes, double smoothing, DType dtype) {
  std::vector<double> targets(static_cast<std::size_t>(labels.numel() * classes),
                              smoothing / static_cast<double>(classes));
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    targets[static_cast<std::size_t>(i * classes + static_cast<std::int64_t>(labels.at({i})))] +=
        1 - smoothing;
  return Tensor::from(targets, {labels.numel(), classes}).to(dtype);
}

struct Values {
  double loss = 0;
  std::vector<double> probabilities, gradient;
};

/// Loss, softmax and gradient (for an incoming gradient of 1) by plain loops.
Values reference(const Tensor& logits, const Tensor& targets) {
  const auto rows = static_cast<std::size_t>(logits.size(0)), k = static_cast<std::size_t>(logits.size(1));
  const std::vector<double> x = logits.to_vector(), t = targets.to_vector();
  Values r{0, x, x};
  for (std::size_t i = 0; i < rows; ++i) {
    double maximum = -infinity, sum = 0, weight = 0;
    for (std::size_t j = i * k; j < (i + 1) * k; ++j) maximum = std::max(maximum, x[j]);
    for (std::size_t j = i * k; j < (i + 1) * k; ++j) sum += std::exp(x[j] - maximum);
    for (std::size_t j = i * k; j < (i + 1) * k; ++j) weight += t[j];
    for (std::size_t j = i * k; j < (i + 1) * k; ++j) {
      r.loss += t[j] * (std::log(sum) - (x[j] - maximum)) / static_cast<double>(rows);
      r.probabilities[j] = std::exp(x[j] - maximum) / sum;
      r.gradient[j] = (weight * r.probabilities[j] - t[j]) / static_cast<double>(rows);
    }
  }
  return r;
}

TEST(CrossEntropy, MatchesTheFormula) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32})
      for (const auto& [rows, classes] :
           {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 10}, {3, 17}, {600, 100}})
        for (const double smoothing : {0.0, 0.1}) {
          const Tensor logits = random({rows, classes}, dtype, 60, 3.0),
                       labels = random_labels(rows, classes, 61);
          const Tensor grad = Tensor::full({1}, -2.5, dtype);
          const Values wanted = reference(logits, smooth_targets(labels, classes, smoothing, DType::f64));
          std::vector<double> gradient = wanted.gradient;
          for (double& value : gradient) value *= -2.5;
          for (const Tensor& view : views(logits)) {
            poison(logits.numel(), dtype);
            const CrossEntropyResult result = cross_entropy_forward(view, labels, smoothing);
            EXPECT_EQ(result.loss.shape(), Shape{1});
            EXPECT_NEAR(result.loss.item(), wanted.loss, tolerance(dtype) * std::max(1.0, wanted.loss));
            expect_values(result.probabilities, wanted.probabilities, tolerance(dtype));
            poison(logits.numel(), dtype);
            expect_values(cross_entropy_backward(result.probabilities, labels, smoothing, grad), gradient,
                          tolerance(dtype));
          }
        }
  });
}

TEST(CrossEntropy, SoftTargetsOfAnyWeight) {
  everywhere([] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor logits = random({301, 13}, dtype, 62, 3.0), targets = random({301, 13}, dtype, 63);
      const Values wanted = reference(logits, targets);
      const std::vector<Tensor> xs = views(logits), ts = views(targets);
      for (std::size_t i = 0; i < xs.size(); ++i) {
        poison(logits.numel(), dtype);
        const CrossEntropyResult result = cross_entropy_soft_forward(xs[i], ts[xs.size() - 1 - i]);
        EXPECT_NEAR(result.loss.item(), wanted.loss, 1e2 * tolerance(dtype));
        const Tensor gradient =
            cross_entropy_soft_backward(result.probabilities, ts[i], Tensor::ones({1}, dtype));
        expect_values(gradient, wanted.gradient, tolerance(dtype));
      }
    }
  });
}

TEST(CrossEntropy, SmoothingIsASoftTarget) {
  const Tensor logits = random({9, 5}, DType::f64, 64), labels = random_labels(9, 5, 65);
  const double hard = cross_entropy_forward(logits, labels, 0.3).loss.item();
  EXPECT_NEAR(hard,
              cross_entropy_soft_forward(logits, smooth_targets(labels, 5, 0.3, DType::f64)).loss.item(),
              1e-14);
}

TEST(CrossEntropy, GradientMatchesDifferences) {
  const Tensor labels = random_labels(3, 4, 66), one = Tensor::ones({1}, DType::f64);
  Tensor logits = random({3, 4}, DType::f64, 67);
  const Tensor gradient =
      cross_entropy_backward(cross_entropy_forward(logits, labels, 0.2).probabilities, labels, 0.2, one);
  for (std::int64_t i = 0; i < 12; ++i) {
    constexpr double step = 1e-5;
    const double value = logits.data<double>()[i];
    logits.mutable_data<double>()[i] = value + step;
    const double up = cross_entropy_forward(logits, labels, 0.2).loss.item();
    logits.mutable_data<double>()[i] = value - step;
    const double down = cross_entropy_forward(logits, labels, 0.2).loss.item();
    logits.mutable_data<double>()[i] = value;
    EXPECT_NEAR(gradient.data<double>()[i], (up - down) / (2 * step), 1e-9);
  }
}

TEST(CrossEntropy, ExtremeLogits) {
  const Tensor x = Tensor::from({1e4, -1e4, 0.0, -infinity, 1.0, 1.0}, {2, 3});
  everywhere([&] {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor logits = x.to(dtype);
      const Tensor likely = Tensor::from<std::int64_t>({0, 1}, {2}),
                   unlikely = Tensor::from<std::int64_t>({1, 2}, {2});
      EXPECT_NEAR(cross_entropy_forward(logits, likely, 0).loss.item(), 0.5 * std::log(2.0), 1e-6);
      EXPECT_NEAR(cross_entropy_forward(logits, unlikely, 0).loss.item(), 0.5 * (2e4 + std::log(2.0)), 1e-3);
    }
  });
  const Tensor bad = Tensor::from({1.0, nan, 2.0}, {1, 3});
  EXPECT_TRUE(std::isnan(cross_entropy_forward(bad, Tensor::from<std::int64_t>({0}, {1}), 0).loss.item()));
}

TEST(CrossEntropy, Errors) {
  const Tensor logits = Tensor::zeros({3, 10});
  const auto labels = [](std::int64_t last) { return Tensor::from<std::int64_t>({0, 9, last}, {3}); };
  EXPECT_THAT(message_of<ValueError>([&] { cross_entropy_forward(logits, labels(10), 0); }),
              HasSubstr("row 2 has label 10, allowed are 0 to 9"));
  EXPECT_THAT(message_of<ValueError>([&] { cross_entropy_forward(logits, labels(-1), 0); }),
              HasSubstr("label -1"));
  EXPECT_THAT(message_of<ValueError>([&] { cross_entropy_forward(logits, labels(1), 1.0); }),
              HasSubstr("[0, 1), is 1"));
  EXPECT_THROW(cross_entropy_forward(logits, labels(1).to(DType::f32), 0), DTypeError);
  EXPECT_THROW(cross_entropy_forward(logits, Tensor::arange(2), 0), ShapeError);
  EXPECT_THROW(cross_entropy_forward(Tensor::zeros({0, 10}), Tensor::arange(0), 0), ShapeError);
  EXPECT_THROW(cross_entropy_forward(Tensor::zeros({10}), labels(1), 0), ShapeError);
  EXPECT_THROW(cross_entropy_backward(logits, labels(1), 0, Tensor::ones({2})), ShapeError);
  EXPECT_THROW(cross_entropy_soft_forward(logits, Tensor::zeros({3, 9})), ShapeError);
  EXPECT_THROW(cross_entropy_soft_forward(logits, Tensor::zeros({3, 10}, DType::f64)), DTypeError);
}

}  // namespace
}  // namespace gyre::kernels
