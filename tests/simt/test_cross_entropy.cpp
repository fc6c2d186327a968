#include "kernels/cuda/cross_entropy_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

struct Values {
  long double loss = 0;
  std::vector<double> probabilities, gradient;
};

/// By the definition, for targets [rows, n].
Values reference(const std::vector<double>& x, const std::vector<double>& targets, std::size_t n,
                 double grad) {
  Values r{0, x, x};
  const auto rows = static_cast<double>(x.size() / n);
  for (std::size_t row = 0; row < x.size(); row += n) {
    long double sum = 0, weight = 0;  // the oracle of f64 adds more exactly
    for (std::size_t i = row; i < row + n; ++i)
      sum += std::exp(static_cast<long double>(x[i])), weight += targets[i];
    for (std::size_t i = row; i < row + n; ++i) {
      r.loss -= targets[i] * (x[i] - std::log(sum)) / rows;
      r.probabilities[i] = static_cast<double>(std::exp(static_cast<long double>(x[i])) / sum);
      r.gradient[i] = static_cast<double>(grad / rows * (r.probabilities[i] * weight - targets[i]));
    }
  }
  return r;
}

template <class T>
void check(std::int64_t rows, std::int64_t n, double smoothing) {
  using S = prim::Wide<T>;
  SCOPED_TRACE(fmt::format("[{}, {}], smoothing {}", rows, n, smoothing));
  const auto x = normal_values<T>(rows * n, 1, 2);
  std::vector<std::int64_t> labels;
  std::vector<double> targets(x.size(), smoothing / static_cast<double>(n));
  for (std::int64_t row = 0; row < rows; ++row) {
    labels.push_back(row * 7 % n);
    targets[static_cast<std::size_t>(row * n + labels.back())] += 1 - smoothing;
  }
  const std::vector<T> grad{narrowed<T>(1.5)};
  const Values wanted = reference(widened(x), targets, static_cast<std::size_t>(n), 1.5);
  Buffer<T> in(x), grads(grad);
  Buffer<std::int64_t> label(labels);
  auto loss = Buffer<T>::output(1), p = Buffer<T>::output(x.size()), result = Buffer<T>::output(x.size());
  auto losses = Buffer<S>::output(labels.size());
  cuda::launch_cross_entropy_forward(in.data(), label.data(), smoothing, loss.data(), p.data(), losses.data(),
                                     rows, n, nullptr);
  expect_close(loss.values(), {static_cast<double>(wanted.loss)});
  expect_close(p.values(), wanted.probabilities);
  cuda::launch_cross_entropy_backward(p.data(), label.data(), smoothing, grads.data(), result.data(), rows, n,
                                      nullptr);
  expect_close(result.values(), wanted.gradient, 2);
}

template <class T>
void check_soft(std::int64_t rows, std::int64_t n) {
  using S = prim::Wide<T>;
  SCOPED_TRACE(fmt::format("[{}, {}]", rows, n));
  const auto x = normal_values<T>(rows * n, 1, 2), targets = normal_values<T>(rows * n, 2, 0.1, 0.2);
  const std::vector<T> grad{narrowed<T>(1.5)};
  const Values wanted = reference(widened(x), widened(targets), static_cast<std::size_t>(n), 1.5);
  const double sum = std::max(1.0, 0.2 * static_cast<double>(n));
  Buffer<T> in(x), target(targets), grads(grad);
  auto loss = Buffer<T>::output(1), p = Buffer<T>::output(x.size()), result = Buffer<T>::output(x.size());
  auto losses = Buffer<S>::output(static_cast<std::size_t>(rows));
  cuda::launch_cross_entropy_soft_forward(in.data(), target.data(), loss.data(), p.data(), losses.data(),
                                          rows, n, nullptr);
  expect_close(loss.values(), {static_cast<double>(wanted.loss)}, 1, 16 * sum);
  expect_close(p.values(), wanted.probabilities);
  cuda::launch_cross_entropy_soft_backward(p.data(), target.data(), grads.data(), result.data(), rows, n,
                                           nullptr);
  expect_close(result.values(), wanted.gradient, 1 + sum, 16 * sum);
}

TEST(CrossEntropyKernels, MatchFormulas) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const double smoothing : {0.0, 0.1}) {
        check<T>(1, 1, smoothing);
        check<T>(9, 10, smoothing);
        check<T>(2, 1100, smoothing);
      }
      check_soft<T>(9, 10);
      check_soft<T>(2, 1100);
    });
  });
  check<float>(700, 10, 0.1);
}

TEST(CrossEntropyKernels, InfiniteLogitsOfOtherClassesDoNotCount) {
  Buffer<float> in(std::vector<float>{0, -std::numeric_limits<float>::infinity(), 0});
  Buffer<std::int64_t> label({2});
  auto loss = Buffer<float>::output(1), p = Buffer<float>::output(3), losses = Buffer<float>::output(1);
  cuda::launch_cross_entropy_forward(in.data(), label.data(), 0, loss.data(), p.data(), losses.data(), 1, 3,
                                     nullptr);
  expect_close(loss.values(), {std::log(2.0)});
  expect_close(p.values(), {0.5, 0, 0.5});
}

}  // namespace
}  // namespace gyre::simt
