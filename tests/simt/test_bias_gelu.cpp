#include "kernels/cuda/bias_gelu_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

double slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}

template <class T>
void check(std::int64_t rows, std::int64_t n, std::size_t offset = 0) {
  using S = prim::Wide<T>;
  SCOPED_TRACE(fmt::format("[{}, {}], offset {}", rows, n, offset));
  const auto before = normal_values<T>(rows * n, 1, 2), grad = normal_values<T>(rows * n, 2);
  std::vector<double> wanted = widened(grad), bias(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] *= slope(static_cast<double>(prim::widen(before[i])));
    bias[i % bias.size()] += wanted[i];
  }
  Buffer<T> in(before, offset), grads(grad, offset);
  auto dx = Buffer<T>::output(before.size(), offset);
  const auto parts = static_cast<std::size_t>(cuda::bias_gelu_parts(rows));
  auto sums = Buffer<S>::output(parts * bias.size());
  cuda::launch_bias_gelu_backward(in.data(), grads.data(), dx.data(), sums.data(), rows, n, nullptr);
  expect_close(dx.values(), wanted);
  const std::vector<S> parted = sums.values();
  std::vector<S> total(bias.size());
  for (std::size_t i = 0; i < parted.size(); ++i) total[i % total.size()] += parted[i];
  expect_close(total, bias, 1, 16 * std::max(1.0, std::sqrt(static_cast<double>(rows))));
}

TEST(BiasGeluKernels, MatchFormulas) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      check<T>(5, 7);      // no packs
      check<T>(9, 264);    // a tile and a bit
      check<T>(3, 32, 1);  // packs off the boundary
      check<T>(1, 1);
      check<T>(0, 8);  // no rows: no gradient
    });
  });
  for_all_types([]<class T>(T) {
    check<T>(64, 40);
    check<T>(65, 40);
    check<T>(300, 24);
  });
}

}  // namespace
}  // namespace gyre::simt
