#include "kernels/cuda/epilogue_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

using kernels::cuda::EpilogueActivation;

double activated(EpilogueActivation activation, double x) {
  switch (activation) {
    case EpilogueActivation::none: return x;
    case EpilogueActivation::gelu: return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case EpilogueActivation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

template <class T>
void check(EpilogueActivation activation, std::int64_t rows, std::int64_t n, std::int64_t stride,
           bool with_bias, bool keep, std::size_t offset) {
  SCOPED_TRACE(fmt::format("activation {} rows {} n {} stride {} bias {} keep {} offset {}",
                           static_cast<int>(activation), rows, n, stride, with_bias, keep, offset));
  const std::int64_t size = rows == 0 ? 0 : (rows - 1) * stride + n;
  const auto x = normal_values<T>(size, 1, 2), bias = normal_values<T>(n, 2);
  std::vector<double> after = widened(x), before = after;
  const std::vector<double> add = widened(bias);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const auto at = static_cast<std::size_t>(row * stride + column);
      if (with_bias) before[at] += add[static_cast<std::size_t>(column)];
      after[at] = activated(activation, before[at]);
    }
  }
  Buffer<T> c(x, offset), biases(bias, offset), kept(x, offset);
  kernels::cuda::launch_epilogue<T>(activation, rows, n, stride, c.data(),
                                    with_bias ? biases.data() : nullptr, keep ? kept.data() : nullptr,
                                    nullptr);
  expect_close(c.values(), after);
  expect_close(kept.values(), keep ? before : widened(x));
}

TEST(EpilogueKernels, BiasAndActivation) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const EpilogueActivation activation :
           {EpilogueActivation::none, EpilogueActivation::gelu, EpilogueActivation::gelu_tanh}) {
        check<T>(activation, 5, 24, 24, true, true, 0);
        check<T>(activation, 3, 16, 32, true, false, 0);
        check<T>(activation, 4, 7, 10, true, true, 0);
        check<T>(activation, 2, 16, 16, false, true, 1);
        check<T>(activation, 0, 8, 8, true, false, 0);
      }
    });
  });
}

}  // namespace
}  // namespace gyre::simt
