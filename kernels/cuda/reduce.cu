#include "kernels/cuda/reduce_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int block = 256;
constexpr std::int64_t few = 32;             // rows that one thread adds up
constexpr int most_columns = 32;             // of a block
constexpr std::int64_t most_blocks = 65536;  // of the narrow kernel; the rest is looped over

/// One thread for each result.
template <class T>
GYRE_KERNEL(block)
narrow_kernel(const T* x, Wide<T>* y, std::int64_t outer, int extent, std::int64_t inner) {
  for (std::int64_t i = prim::global_thread(); i < outer * inner; i += prim::global_threads()) {
    const std::int64_t slab = i / inner;
    const T* from = x + slab * (extent - 1) * inner + i;
    Wide<T> sum = 0;
    for (int j = 0; j < extent; ++j, from += inner) sum += prim::widen(*from);
    y[i] = sum;
  }
}

/// A block adds up to `chunk` rows of `columns` (a power of two) columns: y [outer, parts, inner].
template <class T>
GYRE_KERNEL(block)
sum_kernel(const T* x, Wide<T>* y, std::int64_t extent, std::int64_t inner, int columns, std::int64_t chunk,
           std::int64_t parts) {
  using C = Wide<T>;
  GYRE_SHARED(C, sums);
  const std::int64_t tiles = prim::blocks(inner, columns), at = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t tile = at % tiles, part = at / tiles % parts, slab = at / tiles / parts;
  const int thread = static_cast<int>(threadIdx.x), slices = static_cast<int>(blockDim.x) / columns;
  const int slice = thread / columns;
  const std::int64_t column = tile * columns + thread % columns;
  const std::int64_t end = (part + 1) * chunk < extent ? (part + 1) * chunk : extent;
  C sum = 0;
  if (column < inner) {
    const T* const from = x + slab * extent * inner + column;
    for (std::int64_t row = part * chunk + slice; row < end; row += slices)
      sum += prim::widen(from[row * inner]);
  }
  sums[thread] = sum;
  for (int half = slices / 2; half > 0; half /= 2) {
    prim::sync();
    if (slice < half) sums[thread] += sums[thread + half * columns];
  }
  if (slice == 0 && column < inner) y[(slab * parts + part) * inner + column] = sums[thread];
}

/// a at i comes before b at j: NaN first, then the larger value, then the lower index.
template <class C>
GYRE_DEVICE bool precedes(C a, int i, C b, int j) {
  if (a != a) return b == b || i < j;
  return a > b || (a == b && i < j);
}

/// One warp for each row.
template <class T>
GYRE_KERNEL(block)
argmax_kernel(const T* x, std::int64_t* index, std::int64_t rows, int n) {
  const std::int64_t row = Team<false>::row();
  if (row >= rows) return;
  const T* const from = x + row * n;
  const int lane = prim::lane();
  int best = lane < n ? lane : 0;
  Wide<T> value = prim::widen(from[best]);
  for (int i = lane + prim::warp_size; i < n; i += prim::warp_size) {
    const Wide<T> other = prim::widen(from[i]);
    if (!precedes(other, i, value, best)) continue;
    best = i;
    value = other;
  }
  for (int mask = prim::warp_size / 2; mask > 0; mask /= 2) {
    const Wide<T> other = prim::shfl_xor(value, mask);
    const int at = prim::shfl_xor(best, mask);
    if (!precedes(other, at, value, best)) continue;
    best = at;
    value = other;
  }
  if (lane == 0) index[row] = best;
}

std::int64_t power_of_two_above(std::int64_t n, std::int64_t most) {
  std::int64_t power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

/// How one stage is cut up.
struct Stage {
  int columns, threads;
  std::int64_t chunk, parts;
  Stage(std::int64_t extent, std::int64_t inner)
      : columns(static_cast<int>(power_of_two_above(inner, most_columns))),
        threads(static_cast<int>(columns * power_of_two_above(prim::blocks(extent, 4), block / columns))),
        chunk(block / columns * few),
        parts(prim::blocks(extent, chunk)) {
    if (threads < prim::warp_size) threads = prim::warp_size;
  }
};

template <class T>
void sum_stage(const T* x, Wide<T>* y, std::int64_t outer, std::int64_t extent, std::int64_t inner,
               const Stage& stage, void* stream) {
  const std::int64_t blocks = prim::blocks(inner, stage.columns) * stage.parts * outer;
  GYRE_LAUNCH(sum_kernel<T>, prim::Grid{blocks}, stage.threads, stage.threads * sizeof(Wide<T>), stream, x, y,
              extent, inner, stage.columns, stage.chunk, stage.parts);
}

template <class C>
void sum_parts(const C* x, C* y, std::int64_t outer, std::int64_t extent, std::int64_t inner, C* workspace,
               void* stream) {
  const Stage stage(extent, inner);
  if (stage.parts == 1) return sum_stage(x, y, outer, extent, inner, stage, stream);
  sum_stage(x, workspace, outer, extent, inner, stage, stream);
  sum_parts(workspace, y, outer, stage.parts, inner, workspace + outer * stage.parts * inner, stream);
}

}  // namespace

std::int64_t sum_workspace(std::int64_t outer, std::int64_t extent, std::int64_t inner) {
  std::int64_t count = 0;
  while (extent > few) {
    const Stage stage(extent, inner);
    if (stage.parts == 1) break;
    extent = stage.parts;
    count += outer * extent * inner;
  }
  return count;
}

template <class T, class S>
void launch_sum(const T* x, S* y, std::int64_t outer, std::int64_t extent, std::int64_t inner, S* workspace,
                void* stream) {
  if (extent <= few) {
    const std::int64_t blocks = prim::blocks(outer * inner, block);
    GYRE_LAUNCH(narrow_kernel<T>, prim::Grid{blocks < most_blocks ? blocks : most_blocks}, block, 0, stream,
                x, y, outer, static_cast<int>(extent), inner);
    return;
  }
  const Stage stage(extent, inner);
  if (stage.parts == 1) return sum_stage(x, y, outer, extent, inner, stage, stream);
  sum_stage(x, workspace, outer, extent, inner, stage, stream);
  sum_parts(workspace, y, outer, stage.parts, inner, workspace + outer * stage.parts * inner, stream);
}

template <class T>
void launch_argmax(const T* x, std::int64_t* index, std::int64_t rows, std::int64_t n, void* stream) {
  GYRE_LAUNCH(argmax_kernel<T>, prim::Grid{team_blocks(false, rows)}, block, 0, stream, x, index, rows,
              static_cast<int>(n));
}

#define GYRE_INSTANTIATE(T)                                                                                \
  template void launch_sum(const T*, Wide<T>*, std::int64_t, std::int64_t, std::int64_t, Wide<T>*, void*); \
  template void launch_argmax(const T*, std::int64_t*, std::int64_t, std::int64_t, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
