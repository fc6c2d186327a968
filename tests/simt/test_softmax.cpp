#include "kernels/cuda/softmax_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

template <class T>
void check(std::int64_t rows, std::int64_t n, std::size_t offset = 0) {
  SCOPED_TRACE(fmt::format("[{}, {}], offset {}", rows, n, offset));
  const auto x = normal_values<T>(rows * n, 1, 3), grad = normal_values<T>(rows * n, 2);
  std::vector<double> wanted = widened(x);
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t row = 0; row < wanted.size(); row += width) {
    double sum = 0;
    for (std::size_t i = row; i < row + width; ++i) sum += std::exp(wanted[i]);
    for (std::size_t i = row; i < row + width; ++i) wanted[i] = std::exp(wanted[i]) / sum;
  }
  Buffer<T> in(x, offset), grads(grad, offset);
  auto y = Buffer<T>::output(x.size(), offset), result = Buffer<T>::output(x.size(), offset);
  cuda::launch_softmax_forward(in.data(), y.data(), rows, n, nullptr);
  expect_close(y.values(), wanted);
  const std::vector<double> saved = widened(y.values()), g = widened(grad);
  for (std::size_t row = 0; row < wanted.size(); row += width) {
    double dot = 0;
    for (std::size_t i = row; i < row + width; ++i) dot += saved[i] * g[i];
    for (std::size_t i = row; i < row + width; ++i) wanted[i] = saved[i] * (g[i] - dot);
  }
  cuda::launch_softmax_backward(y.data(), grads.data(), result.data(), rows, n, nullptr);
  expect_close(result.values(), wanted);
}

TEST(SoftmaxKernels, MatchFormulas) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      check<T>(1, 1);
      check<T>(9, 7);
      check<T>(3, 64);
      check<T>(3, 64, 1);
      check<T>(2, 1032);
      check<T>(2, 1025);
    });
  });
}

TEST(SoftmaxKernels, Extremes) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  Buffer<float> in(std::vector<float>{1e30F, -1e30F, 0, -infinity, 0, 0, nan, 0, 1});
  auto y = Buffer<float>::output(9);
  cuda::launch_softmax_forward(in.data(), y.data(), 3, 3, nullptr);
  expect_close(y.values(), {1, 0, 0, 0, 0.5, 0.5, nan, nan, nan});
}

}  // namespace
}  // namespace gyre::simt
