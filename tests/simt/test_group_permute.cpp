#include "core/group.h"
#include "kernels/cuda/group_permute_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

template <class T>
void check(const Group& group, std::int64_t rows, std::int64_t channels) {
  SCOPED_TRACE(fmt::format("{} x {}", rows, channels));
  const std::int64_t order = group.order(), width = channels * order;
  cuda::PairTable table{group.order()};
  for (int t = 0; t < order; ++t)
    for (int s = 0; s < order; ++s) table.index[t][s] = group.mul(group.inv(t), s);
  const auto x = normal_values<T>(rows * width, 1), dense = normal_values<T>(rows * order * width, 2);
  const std::vector<double> values = widened(x), terms = widened(dense);
  std::vector<double> repeated(dense.size()), sums(x.size());
  for (std::int64_t n = 0; n < rows; ++n)
    for (int t = 0; t < order; ++t)
      for (std::int64_t c = 0; c < channels; ++c)
        for (int s = 0; s < order; ++s) {
          const std::int64_t to = ((n * order + t) * channels + c) * order, from = n * width + c * order;
          const int turned = table.index[t][s];
          repeated[static_cast<std::size_t>(to + s)] = values[static_cast<std::size_t>(from + turned)];
          sums[static_cast<std::size_t>(from + s)] += terms[static_cast<std::size_t>(to + turned)];
        }
  Buffer<T> in(x), in_dense(dense);
  auto y = Buffer<T>::output(repeated.size()), sum = Buffer<T>::output(sums.size());
  cuda::launch_repeat_permuted(table, rows, channels, in.data(), y.data(), nullptr);
  EXPECT_EQ(widened(y.values()), repeated);
  cuda::launch_sum_permuted(table, rows, channels, in_dense.data(), sum.data(), nullptr);
  expect_close(sum.values(), sums);
}

TEST(GroupPermuteKernels, MatchTheTable) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      for (const auto name : Group::names()) {
        SCOPED_TRACE(name);
        check<T>(Group::get(name), 1, 1);
        check<T>(Group::get(name), 3, 5);
        check<T>(Group::get(name), 4, 40);
      }
    });
  });
}

}  // namespace
}  // namespace gyre::simt
