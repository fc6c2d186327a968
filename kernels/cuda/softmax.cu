#include "kernels/cuda/softmax_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

template <class T, int width, bool WholeBlock>
GYRE_KERNEL(team_block)
forward_kernel(const T* x, T* y, std::int64_t rows, int n) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, scratch);
  const std::int64_t row = Row::row();
  if (row >= rows) return;
  const T* const from = x + row * n;
  T* const to = y + row * n;
  const int first = Row::rank() * width, step = Row::size() * width;
  C most = negative_infinity<C>();
  for (int i = first; i < n; i += step) {
    C v[width];
    load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) most = prim::Max()(v[k], most);
  }
  most = Row::max(most, scratch);
  C sum = 0;
  for (int i = first; i < n; i += step) {
    C v[width];
    load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) sum += exp_of(v[k] - most);
  }
  sum = Row::sum(sum, scratch);
  const C factor = C(1) / sum;
  for (int i = first; i < n; i += step) {
    C v[width];
    load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) v[k] = exp_of(v[k] - most) * factor;
    store(v, to + i);
  }
}

/// result = y ∘ (grad - y · grad).
template <class T, int width, bool WholeBlock>
GYRE_KERNEL(team_block)
backward_kernel(const T* y, const T* grad, T* result, std::int64_t rows, int n) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, scratch);
  const std::int64_t row = Row::row();
  if (row >= rows) return;
  const T *const from = y + row * n, *const gr = grad + row * n;
  const int first = Row::rank() * width, step = Row::size() * width;
  C dot = 0;
  for (int i = first; i < n; i += step) {
    C v[width], g[width];
    load(from + i, v);
    load(gr + i, g);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) dot += v[k] * g[k];
  }
  dot = Row::sum(dot, scratch);
  for (int i = first; i < n; i += step) {
    C v[width], g[width];
    load(from + i, v);
    load(gr + i, g);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) v[k] *= g[k] - dot;
    store(v, result + row * n + i);
  }
}

template <class T, int width, bool WholeBlock>
void forward(const T* x, T* y, std::int64_t rows, std::int64_t n, void* stream) {
  GYRE_LAUNCH((forward_kernel<T, width, WholeBlock>), prim::Grid{team_blocks(WholeBlock, rows)}, team_block,
              team_scratch * sizeof(Wide<T>), stream, x, y, rows, static_cast<int>(n));
}

template <class T, int width, bool WholeBlock>
void backward(const T* y, const T* grad, T* result, std::int64_t rows, std::int64_t n, void* stream) {
  GYRE_LAUNCH((backward_kernel<T, width, WholeBlock>), prim::Grid{team_blocks(WholeBlock, rows)}, team_block,
              team_scratch * sizeof(Wide<T>), stream, y, grad, result, rows, static_cast<int>(n));
}

}  // namespace

template <class T>
void launch_softmax_forward(const T* x, T* y, std::int64_t rows, std::int64_t n, void* stream) {
  with_team<T>(rows_take_packs<T>(n, x, y), n,
               [&](auto width, auto whole) { forward<T, width, whole>(x, y, rows, n, stream); });
}

template <class T>
void launch_softmax_backward(const T* y, const T* grad, T* result, std::int64_t rows, std::int64_t n,
                             void* stream) {
  with_team<T>(rows_take_packs<T>(n, y, grad, result), n,
               [&](auto width, auto whole) { backward<T, width, whole>(y, grad, result, rows, n, stream); });
}

#define GYRE_INSTANTIATE(T)                                                              \
  template void launch_softmax_forward(const T*, T*, std::int64_t, std::int64_t, void*); \
  template void launch_softmax_backward(const T*, const T*, T*, std::int64_t, std::int64_t, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
