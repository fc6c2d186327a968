#include "kernels/cuda/group_permute_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int block = 256;

/// One thread for each element of y.
template <class T>
GYRE_KERNEL(block)
repeat_kernel(PairTable table, std::int64_t count, std::int64_t channels, const T* x, T* y) {
  const std::int64_t i = prim::global_thread();
  if (i >= count) return;
  const std::int64_t row = i / (channels * table.order);  // n·T + t
  const std::int64_t column = i - row * channels * table.order, t = row % table.order,
                     s = column % table.order;
  y[i] = x[row / table.order * channels * table.order + column - s + table.index[t][s]];
}

template <class T>
GYRE_KERNEL(block)
sum_kernel(PairTable table, std::int64_t count, std::int64_t channels, const T* x, T* y) {
  const std::int64_t i = prim::global_thread();
  if (i >= count) return;
  const std::int64_t width = channels * table.order, row = i / width, column = i - row * width;
  const std::int64_t s = column % table.order;
  const T* from = x + row * width * table.order + column - s;
  Wide<T> sum = 0;
  for (int t = 0; t < table.order; ++t, from += width) sum += prim::widen(from[table.index[t][s]]);
  y[i] = prim::from_float<T>(sum);
}

}  // namespace

template <class T>
void launch_repeat_permuted(const PairTable& table, std::int64_t rows, std::int64_t channels, const T* x,
                            T* y, void* stream) {
  const std::int64_t count = rows * channels * table.order * table.order;
  GYRE_LAUNCH(repeat_kernel<T>, prim::Grid{prim::blocks(count, block)}, block, 0, stream, table, count,
              channels, x, y);
}

template <class T>
void launch_sum_permuted(const PairTable& table, std::int64_t rows, std::int64_t channels, const T* x, T* y,
                         void* stream) {
  const std::int64_t count = rows * channels * table.order;
  GYRE_LAUNCH(sum_kernel<T>, prim::Grid{prim::blocks(count, block)}, block, 0, stream, table, count, channels,
              x, y);
}

#define GYRE_INSTANTIATE(T)                                                                                \
  template void launch_repeat_permuted(const PairTable&, std::int64_t, std::int64_t, const T*, T*, void*); \
  template void launch_sum_permuted(const PairTable&, std::int64_t, std::int64_t, const T*, T*, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
