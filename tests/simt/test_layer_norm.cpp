#include "kernels/cuda/layer_norm_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

struct Values {
  std::vector<double> y, mean, rstd, dx, dgain, dbias;
};

/// Forward and backward by the textbook formulas; mean and rstd may be given.
Values reference(const std::vector<double>& x, const std::vector<double>& gain,
                 const std::vector<double>& bias, const std::vector<double>& grad, std::size_t rows,
                 std::size_t repeat, double eps) {
  const std::size_t n = gain.size() * repeat;
  const double count = static_cast<double>(n);
  Values r{x, std::vector<double>(rows),        std::vector<double>(rows),
           x, std::vector<double>(gain.size()), std::vector<double>(gain.size())};
  for (std::size_t i = 0; i < rows; ++i) {
    double mean = 0, variance = 0, sum = 0, dot = 0;
    for (std::size_t j = 0; j < n; ++j) mean += x[i * n + j] / count;
    for (std::size_t j = 0; j < n; ++j) variance += (x[i * n + j] - mean) * (x[i * n + j] - mean) / count;
    const double rstd = 1 / std::sqrt(variance + eps);
    r.mean[i] = mean;
    r.rstd[i] = rstd;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j, c = j / repeat;
      const double z = (x[at] - mean) * rstd;
      r.y[at] = z * gain[c] + bias[c];
      r.dgain[c] += grad[at] * z;
      r.dbias[c] += grad[at];
      sum += grad[at] * gain[c] / count;
      dot += grad[at] * gain[c] * z / count;
    }
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = i * n + j;
      r.dx[at] = rstd * (grad[at] * gain[j / repeat] - sum - (x[at] - mean) * rstd * dot);
    }
  }
  return r;
}

template <class T>
void check(std::int64_t rows, std::int64_t channels, int repeat, std::size_t offset = 0, double mean = 0.5) {
  using S = prim::Wide<T>;
  SCOPED_TRACE(fmt::format("[{}, {} * {}], offset {}", rows, channels, repeat, offset));
  const std::int64_t n = channels * repeat;
  const auto x = normal_values<T>(rows * n, 1, 2, mean), grad = normal_values<T>(rows * n, 2);
  const auto gain = normal_values<S>(channels, 3, 1, 1), bias = normal_values<S>(channels, 4);
  const Values wanted = reference(widened(x), widened(gain), widened(bias), widened(grad),
                                  static_cast<std::size_t>(rows), static_cast<std::size_t>(repeat), 1e-5);
  Buffer<T> in(x, offset), grads(grad, offset);
  Buffer<S> gains(gain), biases(bias);
  const auto count = static_cast<std::size_t>(rows);
  auto y = Buffer<T>::output(x.size(), offset), dx = Buffer<T>::output(x.size(), offset);
  auto dgain = Buffer<S>::output(gain.size()), dbias = Buffer<S>::output(gain.size());
  auto means = Buffer<S>::output(count), rstd = Buffer<S>::output(count);
  auto workspace = Buffer<S>::output(static_cast<std::size_t>(cuda::layer_norm_workspace(rows, n)));
  const double steps = 32 * std::max(1.0, std::abs(mean));
  if (rows > 0)
    cuda::launch_layer_norm_forward(in.data(), gains.data(), biases.data(), repeat, 1e-5, y.data(),
                                    means.data(), rstd.data(), rows, n, nullptr);
  expect_close(y.values(), wanted.y, 1, steps);
  expect_close(means.values(), wanted.mean, 1, 16);
  expect_close(rstd.values(), wanted.rstd, 1, 16);
  cuda::launch_layer_norm_backward(in.data(), gains.data(), means.data(), rstd.data(), grads.data(), repeat,
                                   dx.data(), dgain.data(), dbias.data(), workspace.data(), rows, n, nullptr);
  expect_close(dx.values(), wanted.dx, 1, steps);
  const double sum_steps = steps * std::max(1.0, std::sqrt(static_cast<double>(rows * repeat)));
  expect_close(dgain.values(), wanted.dgain, 1, sum_steps);
  expect_close(dbias.values(), wanted.dbias, 1, sum_steps);
}

TEST(LayerNormKernels, MatchFormulas) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      check<T>(5, 7, 1);      // no packs
      check<T>(3, 16, 4);     // tied over a group
      check<T>(9, 24, 8);     // more rows than warps
      check<T>(2, 10, 3);     // tied over no power of two
      check<T>(3, 32, 1, 1);  // packs off the boundary
      check<T>(1, 1, 1);
      check<T>(0, 8, 1);  // no rows: no gradient
    });
  });
}

TEST(LayerNormKernels, WideRows) {
  for_all_types([]<class T>(T) {
    check<T>(3, 1056, 1);  // a block for a row
    check<T>(2, 517, 3);   // without packs
    check<T>(40, 200, 4);  // several blocks of partial sums
    check<T>(2, 1600, 4);  // sums of a row exceed cheap shared memory
    check<T>(300, 8, 1);
  });
}

TEST(LayerNormKernels, DistantMean) {
  check<float>(4, 64, 1, 0, 1000);
  check<float>(2, 2048, 1, 0, 1000);
}

}  // namespace
}  // namespace gyre::simt
