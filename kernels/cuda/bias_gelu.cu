#include "kernels/cuda/bias_gelu_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int slices = team_block / prim::warp_size;  // rows that a block works on at once
constexpr std::int64_t part_rows = 64;

/// One part of the rows of 32·width columns; every warp takes rows of its own.
template <class T, int width>
GYRE_KERNEL(team_block)
backward_kernel(const T* before, const T* grad, T* dx, Wide<T>* sums, std::int64_t rows, std::int64_t n) {
  using C = Wide<T>;
  GYRE_SHARED(C, shared);
  constexpr int columns = prim::warp_size * width;
  const std::int64_t tiles = prim::blocks(n, columns), block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t part = block / tiles, first = block % tiles * columns,
                     column = first + prim::lane() * width;
  const std::int64_t end = (part + 1) * part_rows < rows ? (part + 1) * part_rows : rows;
  C sum[width];
  GYRE_UNROLL
  for (int k = 0; k < width; ++k) sum[k] = 0;
  if (column < n)
    for (std::int64_t row = part * part_rows + prim::warp(); row < end; row += slices) {
      C s[width], g[width];
      load(before + row * n + column, s);
      load(grad + row * n + column, g);
      GYRE_UNROLL
      for (int k = 0; k < width; ++k) {
        g[k] *= gelu_slope(s[k]);
        sum[k] += g[k];
      }
      store(g, dx + row * n + column);
    }
  store(sum, shared + prim::warp() * columns + prim::lane() * width);
  prim::sync();
  const int own = static_cast<int>(threadIdx.x);
  if (own >= columns || first + own >= n) return;
  C total = 0;
  for (int slice = 0; slice < slices; ++slice) total += shared[slice * columns + own];
  sums[part * n + first + own] = total;
}

template <class T, int width>
void launch(const T* before, const T* grad, T* dx, Wide<T>* sums, std::int64_t rows, std::int64_t n,
            void* stream) {
  const std::int64_t blocks = prim::blocks(n, prim::warp_size * width) * bias_gelu_parts(rows);
  GYRE_LAUNCH((backward_kernel<T, width>), prim::Grid{blocks}, team_block,
              team_block * width * sizeof(Wide<T>), stream, before, grad, dx, sums, rows, n);
}

}  // namespace

std::int64_t bias_gelu_parts(std::int64_t rows) { return rows == 0 ? 1 : prim::blocks(rows, part_rows); }

template <class T, class S>
void launch_bias_gelu_backward(const T* before, const T* grad, T* dx, S* sums, std::int64_t rows,
                               std::int64_t n, void* stream) {
  constexpr int width = sizeof(T) < 8 ? pack_size<T> : 1;  // two erfc of f64 exceed the registers
  if (rows_take_packs<T>(n, before, grad, dx))
    launch<T, width>(before, grad, dx, sums, rows, n, stream);
  else
    launch<T, 1>(before, grad, dx, sums, rows, n, stream);
}

#define GYRE_INSTANTIATE(T)                                                                             \
  template void launch_bias_gelu_backward(const T*, const T*, T*, Wide<T>*, std::int64_t, std::int64_t, \
                                          void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
