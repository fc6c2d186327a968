#include "kernels/cuda/layer_norm_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

/// Column → channel; groups have orders of two's powers, for which a shift serves.
struct Channels {
  int repeat, shift;  // shift < 0: divide
  explicit Channels(int repeat_count) : repeat(repeat_count), shift(-1) {
    for (int s = 0; s < 31; ++s)
      if (1 << s == repeat) shift = s;
  }
  GYRE_DEVICE int of(int column) const { return shift >= 0 ? column >> shift : column / repeat; }
};

template <class T, int width, bool WholeBlock>
GYRE_KERNEL(team_block)
forward_kernel(const T* x, const Wide<T>* gain, const Wide<T>* bias, Channels channels, Wide<T> eps, T* y,
               Wide<T>* mean, Wide<T>* rstd, std::int64_t rows, int n) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, scratch);
  const std::int64_t row = Row::row();
  if (row >= rows) return;
  const T* const from = x + row * n;
  const int first = Row::rank() * width, step = Row::size() * width;
  const C count = static_cast<C>(n);
  C sum = 0;
  for (int i = first; i < n; i += step) {
    C v[width];
    load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) sum += v[k];
  }
  sum = Row::sum(sum, scratch);
  const C center = sum / count;
  // The second pass also measures how far `center` was rounded.
  C residue = 0, squares = 0;
  for (int i = first; i < n; i += step) {
    C v[width];
    load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) {
      v[k] -= center;
      residue += v[k];
      squares += v[k] * v[k];
    }
  }
  residue = Row::sum(residue, scratch);
  squares = Row::sum(squares, scratch);
  const C shift = residue / count, variance = squares / count - shift * shift;
  const C scale = C(1) / sqrt_of((variance > C(0) ? variance : C(0)) + eps);
  if (Row::rank() == 0) {
    mean[row] = center + shift;
    rstd[row] = scale;
  }
  T* const to = y + row * n;
  for (int i = first; i < n; i += step) {
    C v[width];
    load(from + i, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) {
      const int c = channels.of(i + k);
      v[k] = ((v[k] - center) - shift) * scale * gain[c] + bias[c];
    }
    store(v, to + i);
  }
}

/// Adds v to sums[0 …].
template <class C, int width>
GYRE_DEVICE void add_to(const C (&v)[width], C* sums) {
  C total[width];
  load(sums, total);
  GYRE_UNROLL
  for (int k = 0; k < width; ++k) total[k] += v[k];
  store(total, sums);
}

/// dx, and per block the sums over its rows of grad·z and of grad: parts [blocks, 2, n]. Every column belongs
/// to one thread of a team, which alone touches its sums.
template <class T, int width, bool WholeBlock>
GYRE_KERNEL(team_block, 2)
backward_kernel(const T* x, const Wide<T>* gain, Channels channels, const Wide<T>* mean, const Wide<T>* rstd,
                const T* grad, T* dx, Wide<T>* parts, bool sums_in_shared, std::int64_t rows, int n) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, shared);
  const int teams = WholeBlock ? 1 : prim::warps(), team = WholeBlock ? 0 : prim::warp();
  const int first = Row::rank() * width, step = Row::size() * width;
  C* const part = parts + static_cast<std::int64_t>(blockIdx.x) * 2 * n;
  C* const gain_sums = sums_in_shared ? shared + team_scratch + team * 2 * n : part;
  C* const bias_sums = gain_sums + n;
  for (int i = first; i < n; i += step) {
    C zeros[width];
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) zeros[k] = 0;
    store(zeros, gain_sums + i);
    store(zeros, bias_sums + i);
  }
  const C count = static_cast<C>(n);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * teams;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * teams + team; row < rows; row += stride) {
    const T *const xr = x + row * n, *const gr = grad + row * n;
    const C center = mean[row], scale = rstd[row];
    C sum = 0, dot = 0;
    for (int i = first; i < n; i += step) {
      C v[width], g[width];
      load(xr + i, v);
      load(gr + i, g);
      GYRE_UNROLL
      for (int k = 0; k < width; ++k) {
        const C scaled = g[k] * gain[channels.of(i + k)];
        sum += scaled;
        dot += scaled * (v[k] - center);
      }
    }
    sum = Row::sum(sum, shared);
    dot = Row::sum(dot, shared);
    // dx = rstd (g - Σg/n - z Σgz/n) with z = (x - mean) rstd.
    const C shift = sum / count, slope = dot * scale / count;
    for (int i = first; i < n; i += step) {
      C v[width], g[width], products[width];
      load(xr + i, v);
      load(gr + i, g);
      GYRE_UNROLL
      for (int k = 0; k < width; ++k) {
        const C z = (v[k] - center) * scale;
        products[k] = g[k] * z;
        v[k] = scale * (g[k] * gain[channels.of(i + k)] - shift - z * slope);
      }
      store(v, dx + row * n + i);
      add_to(products, gain_sums + i);
      add_to(g, bias_sums + i);
    }
  }
  if (!sums_in_shared) return;
  prim::sync();
  for (int i = static_cast<int>(threadIdx.x); i < 2 * n; i += team_block) {
    C total = 0;
    for (int t = 0; t < teams; ++t) total += shared[team_scratch + t * 2 * n + i];
    part[i] = total;
  }
}

constexpr int tile = 32;  // channels of a block

/// dgain (blockIdx.y = 0) and dbias (1) from parts [count, 2, n].
template <class C>
GYRE_KERNEL(team_block)
collect_kernel(const C* parts, int count, int repeat, int n, C* dgain, C* dbias) {
  GYRE_SHARED(C, sums);
  const int x = static_cast<int>(threadIdx.x) % tile, y = static_cast<int>(threadIdx.x) / tile;
  constexpr int slices = team_block / tile;
  const int channel = static_cast<int>(blockIdx.x) * tile + x, channels = n / repeat;
  C sum = 0;
  if (channel < channels)
    for (int p = y; p < count; p += slices) {
      const C* const from = parts + (static_cast<std::int64_t>(p) * 2 + blockIdx.y) * n + channel * repeat;
      for (int k = 0; k < repeat; ++k) sum += from[k];
    }
  sums[y * tile + x] = sum;
  prim::sync();
  if (y == 0 && channel < channels) {
    for (int s = 1; s < slices; ++s) sum += sums[s * tile + x];
    (blockIdx.y == 0 ? dgain : dbias)[channel] = sum;
  }
}

constexpr std::int64_t most_parts = 512, rows_of_team = 16;
constexpr std::int64_t cheap_shared = 48 * 1024;  // bytes; more would cost blocks per multiprocessor

std::int64_t part_count(std::int64_t rows, std::int64_t teams) {
  const std::int64_t parts = prim::blocks(rows, rows_of_team * teams);
  return parts < 1 ? 1 : parts > most_parts ? most_parts : parts;
}

template <class T, int width, bool WholeBlock>
void forward(const T* x, const Wide<T>* gain, const Wide<T>* bias, int repeat, double eps, T* y,
             Wide<T>* mean, Wide<T>* rstd, std::int64_t rows, std::int64_t n, void* stream) {
  using C = Wide<T>;
  GYRE_LAUNCH((forward_kernel<T, width, WholeBlock>), prim::Grid{team_blocks(WholeBlock, rows)}, team_block,
              team_scratch * sizeof(C), stream, x, gain, bias, Channels(repeat), static_cast<C>(eps), y, mean,
              rstd, rows, static_cast<int>(n));
}

template <class T, int width>
void backward(const T* x, const Wide<T>* gain, const Wide<T>* mean, const Wide<T>* rstd, const T* grad,
              int repeat, T* dx, Wide<T>* dgain, Wide<T>* dbias, Wide<T>* workspace, std::int64_t rows,
              std::int64_t n, void* stream) {
  using C = Wide<T>;
  constexpr std::int64_t size = sizeof(C), warps = team_block / prim::warp_size;
  const auto shared_for = [&](std::int64_t teams) { return (team_scratch + teams * 2 * n) * size; };
  const bool whole_block = n > warp_row || shared_for(warps) > cheap_shared;
  const bool in_shared = !whole_block || shared_for(1) <= cheap_shared;
  const std::int64_t parts = part_count(rows, whole_block ? 1 : warps);
  const Channels channels(repeat);
  const int columns = static_cast<int>(n);
  if (whole_block)
    GYRE_LAUNCH((backward_kernel<T, width, true>), prim::Grid{parts}, team_block,
                in_shared ? shared_for(1) : team_scratch * size, stream, x, gain, channels, mean, rstd, grad,
                dx, workspace, in_shared, rows, columns);
  else
    GYRE_LAUNCH((backward_kernel<T, width, false>), prim::Grid{parts}, team_block, shared_for(warps), stream,
                x, gain, channels, mean, rstd, grad, dx, workspace, true, rows, columns);
  GYRE_LAUNCH(collect_kernel<C>, (prim::Grid{prim::blocks(n / repeat, tile), 2}), team_block,
              team_block * size, stream, workspace, static_cast<int>(parts), repeat, columns, dgain, dbias);
}

}  // namespace

std::int64_t layer_norm_workspace(std::int64_t rows, std::int64_t n) { return part_count(rows, 1) * 2 * n; }

template <class T, class S>
void launch_layer_norm_forward(const T* x, const S* gain, const S* bias, int repeat, double eps, T* y,
                               S* mean, S* rstd, std::int64_t rows, std::int64_t n, void* stream) {
  with_team<T>(rows_take_packs<T>(n, x, y), n, [&](auto width, auto whole) {
    forward<T, width, whole>(x, gain, bias, repeat, eps, y, mean, rstd, rows, n, stream);
  });
}

template <class T, class S>
void launch_layer_norm_backward(const T* x, const S* gain, const S* mean, const S* rstd, const T* grad,
                                int repeat, T* dx, S* dgain, S* dbias, S* workspace, std::int64_t rows,
                                std::int64_t n, void* stream) {
  if (rows_take_packs<T>(n, x, grad, dx, workspace))
    backward<T, pack_size<T>>(x, gain, mean, rstd, grad, repeat, dx, dgain, dbias, workspace, rows, n,
                              stream);
  else
    backward<T, 1>(x, gain, mean, rstd, grad, repeat, dx, dgain, dbias, workspace, rows, n, stream);
}

#define GYRE_INSTANTIATE(T)                                                                               \
  template void launch_layer_norm_forward(const T*, const Wide<T>*, const Wide<T>*, int, double, T*,      \
                                          Wide<T>*, Wide<T>*, std::int64_t, std::int64_t, void*);         \
  template void launch_layer_norm_backward(const T*, const Wide<T>*, const Wide<T>*, const Wide<T>*,      \
                                           const T*, int, T*, Wide<T>*, Wide<T>*, Wide<T>*, std::int64_t, \
                                           std::int64_t, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
