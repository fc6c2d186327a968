#include "kernels/cuda/reduce_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

template <class T>
void check(std::int64_t outer, std::int64_t extent, std::int64_t inner) {
  SCOPED_TRACE(fmt::format("[{}, {}, {}]", outer, extent, inner));
  const auto x = normal_values<T>(outer * extent * inner, 1);
  const std::vector<double> values = widened(x);
  std::vector<double> wanted(static_cast<std::size_t>(outer * inner));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    wanted[static_cast<std::size_t>(at / (extent * inner) * inner + at % inner)] += values[i];
  }
  Buffer<T> in(x);
  auto y = Buffer<prim::Wide<T>>::output(wanted.size());
  auto workspace =
      Buffer<prim::Wide<T>>::output(static_cast<std::size_t>(cuda::sum_workspace(outer, extent, inner)));
  cuda::launch_sum(in.data(), y.data(), outer, extent, inner, workspace.data(), nullptr);
  expect_close(y.values(), wanted, 1, 8 * std::sqrt(static_cast<double>(extent)));
}

TEST(SumKernels, MatchLoops) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      check<T>(1, 1, 1);
      check<T>(5, 3, 7);  // one thread for each sum
      check<T>(70, 4, 1);
      check<T>(3, 40, 1);  // one block for each tile
      check<T>(2, 100, 5);
      check<T>(2, 65, 33);
      check<T>(1, 300, 70);  // two stages
    });
  });
}

TEST(SumKernels, LongSums) {
  check<float>(1, 9000, 1);
  check<float>(3, 8193, 2);
  check<float>(1, 70000, 33);  // three stages
  check<double>(1, 20000, 1);
}

TEST(SumKernels, ErrorStaysSmall) {
  // Ones and a value that f32 cannot add one to: a running sum would lose them all.
  constexpr std::int64_t count = 100000;
  std::vector<float> x(count, 0.1F);
  Buffer<float> in(x);
  auto y = Buffer<float>::output(1);
  auto workspace = Buffer<float>::output(static_cast<std::size_t>(cuda::sum_workspace(1, count, 1)));
  cuda::launch_sum(in.data(), y.data(), 1, count, 1, workspace.data(), nullptr);
  EXPECT_NEAR(y.values()[0] / (count * static_cast<double>(0.1F)), 1, 1e-6);
}

template <class T>
void check_argmax(std::int64_t rows, std::int64_t n) {
  SCOPED_TRACE(fmt::format("[{}, {}]", rows, n));
  const auto x = normal_values<T>(rows * n, 3, 4);  // 16-bit values repeat
  const std::vector<double> values = widened(x);
  Buffer<T> in(x);
  auto index = Buffer<std::int64_t>::output(static_cast<std::size_t>(rows));
  cuda::launch_argmax(in.data(), index.data(), rows, n, nullptr);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto* from = values.data() + row * n;
    EXPECT_EQ(index.values()[static_cast<std::size_t>(row)], std::max_element(from, from + n) - from);
  }
}

TEST(ArgmaxKernel, FindsTheFirstMaximum) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const std::int64_t n : {1, 5, 32, 33, 1000}) check_argmax<T>(11, n);
    });
  });
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> rows{0, 7, 7, infinity, nan, nan, -infinity, -infinity, -infinity};
  Buffer<float> in(rows);
  auto index = Buffer<std::int64_t>::output(3);
  cuda::launch_argmax(in.data(), index.data(), 3, 3, nullptr);
  EXPECT_EQ(index.values(), (std::vector<std::int64_t>{1, 1, 0}));
}

}  // namespace
}  // namespace gyre::simt
