#include <numeric>

#include "kernels/cuda/gather_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

std::vector<std::int64_t> random_index(std::int64_t k, std::int64_t m, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::test);
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < k; ++i)
    index.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(m))));
  return index;
}

/// 0, 1, 2 … modulo the range of T.
template <class T>
std::vector<T> counting(std::int64_t n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), T(0));
  return values;
}

template <class T>
void check_gather(std::int64_t rows, std::int64_t m, std::int64_t k) {
  const auto x = counting<T>(rows * m);
  const auto index = random_index(k, m, 1);
  std::vector<T> wanted;
  for (std::int64_t row = 0; row < rows; ++row)
    for (const std::int64_t i : index) wanted.push_back(x[static_cast<std::size_t>(row * m + i)]);
  Buffer<T> in(x);
  Buffer<std::int64_t> indices(index);
  auto y = Buffer<T>::output(wanted.size());
  cuda::launch_gather(in.data(), indices.data(), y.data(), rows, m, k, sizeof(T), nullptr);
  EXPECT_EQ(y.values(), wanted);
}

TEST(GatherKernels, Gather) {
  in_all_schedules([] {
    check_gather<std::uint8_t>(3, 5, 7);
    check_gather<std::uint16_t>(3, 50, 7);
    check_gather<std::uint32_t>(4, 9, 300);
    check_gather<std::uint64_t>(1, 1, 1);
  });
}

TEST(GatherKernels, BackwardAddsRepeatedIndices) {
  in_all_schedules([] {
    for_all_types([]<class T>(T) {
      const std::int64_t rows = 3, m = 11, k = 40;
      const auto index = random_index(k, m - 1, 2);  // the last column is nobody's
      std::vector<std::int64_t> starts{0}, order;
      for (std::int64_t column = 0; column < m; ++column) {
        for (std::int64_t i = 0; i < k; ++i)
          if (index[static_cast<std::size_t>(i)] == column) order.push_back(i);
        starts.push_back(static_cast<std::int64_t>(order.size()));
      }
      const auto grad = normal_values<T>(rows * k, 3);
      const std::vector<double> values = widened(grad);
      std::vector<double> wanted(static_cast<std::size_t>(rows * m));
      for (std::int64_t i = 0; i < rows * k; ++i)
        wanted[static_cast<std::size_t>(i / k * m + index[static_cast<std::size_t>(i % k)])] +=
            values[static_cast<std::size_t>(i)];
      Buffer<T> in(grad);
      Buffer<std::int64_t> start(starts), orders(order);
      auto result = Buffer<T>::output(wanted.size());
      cuda::launch_gather_backward(in.data(), start.data(), orders.data(), result.data(), rows, m, k,
                                   nullptr);
      expect_close(result.values(), wanted);
    });
  });
}

/// Rows of `bytes` of each batch, indexed or in order, between arrays whose rows have gaps.
void check_rows(std::int64_t bytes, std::int64_t from_gap, std::int64_t to_gap, bool indexed,
                std::size_t offset) {
  SCOPED_TRACE(fmt::format("{} bytes, gaps {} and {}, offset {}", bytes, from_gap, to_gap, offset));
  const std::int64_t batches = 3, length = 5, count = indexed ? 7 : length;
  const std::int64_t from_stride = bytes + from_gap, to_stride = bytes + to_gap;
  const auto x = counting<std::uint8_t>(batches * length * from_stride);
  const auto index = random_index(count, length, 4);
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(batches * count * to_stride), 0xEE);
  Buffer<std::uint8_t> in(x, offset), out(wanted, offset);
  for (std::int64_t row = 0; row < batches * count; ++row)
    for (std::int64_t i = 0; i < bytes; ++i) {
      const std::int64_t place = indexed ? index[static_cast<std::size_t>(row % count)] : row % count;
      wanted[static_cast<std::size_t>(row * to_stride + i)] =
          x[static_cast<std::size_t>((row / count * length + place) * from_stride + i)];
    }
  Buffer<std::int64_t> indices(index);
  cuda::launch_row_copy({in.data(), out.data(), indexed ? indices.data() : nullptr, batches, count, length,
                         bytes, from_stride, to_stride},
                        nullptr);
  EXPECT_EQ(out.values(), wanted);
}

TEST(GatherKernels, RowCopies) {
  in_all_schedules([] {
    for (const bool indexed : {false, true}) {
      check_rows(64, 0, 32, indexed, 0);
      check_rows(64, 16, 0, indexed, 4);
      check_rows(12, 4, 8, indexed, 0);
      check_rows(10, 0, 6, indexed, 2);
      check_rows(7, 1, 3, indexed, 1);
    }
  });
}

}  // namespace
}  // namespace gyre::simt
