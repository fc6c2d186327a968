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

/// Where the input lies.
enum class From { result, kept, elsewhere };

template <class T>
void check(EpilogueActivation activation, std::int64_t rows, std::int64_t n, std::int64_t stride,
           bool with_bias, bool keep, From from, std::size_t offset = 0) {
  SCOPED_TRACE(fmt::format("activation {} rows {} n {} stride {} bias {} keep {} from {} offset {}",
                           static_cast<int>(activation), rows, n, stride, with_bias, keep,
                           static_cast<int>(from), offset));
  const std::int64_t size = rows == 0 ? 0 : (rows - 1) * stride + n;
  const auto x = normal_values<T>(size, 1, 2), bias = normal_values<T>(n, 2),
             other = normal_values<T>(size, 3);
  std::vector<double> before = widened(from == From::elsewhere ? other : x), after = widened(x), sums = after;
  const std::vector<double> add = widened(bias);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const auto at = static_cast<std::size_t>(row * stride + column);
      sums[at] = before[at] + (with_bias ? add[static_cast<std::size_t>(column)] : 0);
      after[at] = activated(activation, sums[at]);
    }
  }
  Buffer<T> y(x, offset), biases(bias, offset), kept(x, offset), input(other, offset);
  const T* const read = from == From::result ? y.data() : from == From::kept ? kept.data() : input.data();
  kernels::cuda::launch_epilogue<T>(activation, rows, n, stride, read, with_bias ? biases.data() : nullptr,
                                    keep ? kept.data() : nullptr, y.data(), nullptr);
  expect_close(y.values(), after);
  expect_close(kept.values(), keep ? sums : widened(x));
}

TEST(EpilogueKernels, BiasAndActivation) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const EpilogueActivation activation :
           {EpilogueActivation::none, EpilogueActivation::gelu, EpilogueActivation::gelu_tanh}) {
        check<T>(activation, 5, 24, 24, true, true, From::result);
        check<T>(activation, 3, 16, 32, true, false, From::result);
        check<T>(activation, 4, 7, 10, true, true, From::kept);
        check<T>(activation, 3, 16, 24, false, false, From::kept);
        check<T>(activation, 2, 16, 16, false, true, From::elsewhere, 1);
        check<T>(activation, 0, 8, 8, true, false, From::result);
      }
    });
  });
}

}  // namespace
}  // namespace gyre::simt
