#pragma once

// What several kernels share: 16-byte accesses, one name for a function of f32 and f64, rows shared by
// threads.

#include <cstdint>
#include <type_traits>

#include "core/cuda/prim.cuh"

namespace gyre::kernels::cuda {

using prim::Wide;

/// Elements in 16 bytes.
template <class T>
inline constexpr int pack_size = prim::Pack<T>::size;

/// `count` neighbours: one, or whole packs on a 16-byte boundary.
template <class T, int count>
GYRE_DEVICE void load(const T* from, Wide<T> (&values)[count]) {
  if constexpr (count == 1) {
    values[0] = prim::widen(*from);
  } else {
    constexpr int width = pack_size<T>;
    static_assert(count % width == 0);
    GYRE_UNROLL
    for (int at = 0; at < count; at += width) {
      const prim::Pack<T> raw = prim::ld128(from + at);
      GYRE_UNROLL
      for (int i = 0; i < width; ++i) values[at + i] = prim::widen(raw[i]);
    }
  }
}

template <class T, int count>
GYRE_DEVICE void store(const Wide<T> (&values)[count], T* to) {
  if constexpr (count == 1) {
    *to = prim::from_float<T>(values[0]);
  } else {
    constexpr int width = pack_size<T>;
    static_assert(count % width == 0);
    GYRE_UNROLL
    for (int at = 0; at < count; at += width) {
      prim::Pack<T> raw;
      GYRE_UNROLL
      for (int i = 0; i < width; ++i) raw[i] = prim::from_float<T>(values[at + i]);
      prim::st128(to + at, raw);
    }
  }
}

/// `count` neighbours; packs where they are whole and `packs` allows it.
template <bool packs, class T, int count>
GYRE_DEVICE void load_run(const T* from, Wide<T> (&values)[count]) {
  if constexpr (packs && count % pack_size<T> == 0) {
    load(from, values);
  } else {
    GYRE_UNROLL
    for (int i = 0; i < count; ++i) values[i] = prim::widen(from[i]);
  }
}

template <bool packs, class T, int count>
GYRE_DEVICE void store_run(const Wide<T> (&values)[count], T* to) {
  if constexpr (packs && count % pack_size<T> == 0) {
    store(values, to);
  } else {
    GYRE_UNROLL
    for (int i = 0; i < count; ++i) to[i] = prim::from_float<T>(values[i]);
  }
}

/// All pointers allow 16-byte accesses; null does.
template <class... P>
bool aligned(const P*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

/// Rows of n elements can be read in packs.
template <class T, class... P>
bool rows_take_packs(std::int64_t n, const P*... pointers) {
  return n % pack_size<T> == 0 && aligned(pointers...);
}

GYRE_DEVICE float exp_of(float x) { return expf(x); }
GYRE_DEVICE double exp_of(double x) { return exp(x); }
GYRE_DEVICE float log_of(float x) { return logf(x); }
GYRE_DEVICE double log_of(double x) { return log(x); }
GYRE_DEVICE float sqrt_of(float x) { return sqrtf(x); }
GYRE_DEVICE double sqrt_of(double x) { return sqrt(x); }
GYRE_DEVICE float tanh_of(float x) { return tanhf(x); }
GYRE_DEVICE double tanh_of(double x) { return tanh(x); }
GYRE_DEVICE float erfc_of(float x) { return erfcf(x); }
GYRE_DEVICE double erfc_of(double x) { return erfc(x); }
/// Φ(x), accurate in the far negative tail as well.
template <class C>
GYRE_DEVICE C normal_cdf(C x) {
  return C(0.5) * erfc_of(x * C(-0.70710678118654752));
}

/// d(x·Φ(x))/dx.
template <class C>
GYRE_DEVICE C gelu_slope(C x) {
  const C density = C(0.39894228040143268) * exp_of(C(-0.5) * x * x);
  return normal_cdf(x) + x * density;
}

template <class C>
GYRE_DEVICE C negative_infinity() {
  return static_cast<C>(-HUGE_VAL);
}

/// The threads that share a row: a warp, with as many rows in a block as it has warps, or the whole block.
template <bool WholeBlock>
struct Team {
  GYRE_DEVICE static int rank() { return WholeBlock ? static_cast<int>(threadIdx.x) : prim::lane(); }
  GYRE_DEVICE static int size() { return WholeBlock ? static_cast<int>(blockDim.x) : prim::warp_size; }
  GYRE_DEVICE static std::int64_t row() {
    return WholeBlock ? static_cast<std::int64_t>(blockIdx.x)
                      : static_cast<std::int64_t>(blockIdx.x) * prim::warps() + prim::warp();
  }
  /// For all threads of the team; `scratch`: team_scratch elements of shared memory.
  template <class C>
  GYRE_DEVICE static C sum(C value, C* scratch) {
    if constexpr (WholeBlock)
      return prim::block_sum(value, scratch);
    else
      return prim::warp_sum(value);
  }
  template <class C>
  GYRE_DEVICE static C max(C value, C* scratch) {
    if constexpr (WholeBlock)
      return prim::block_max(value, scratch);
    else
      return prim::warp_max(value);
  }
};

inline constexpr int team_scratch = 32;         // elements
inline constexpr int team_block = 256;          // threads
inline constexpr std::int64_t warp_row = 1024;  // longest row that a warp takes

/// Blocks for `rows` rows.
inline std::int64_t team_blocks(bool whole_block, std::int64_t rows) {
  return whole_block ? rows : prim::blocks(rows, team_block / prim::warp_size);
}

/// Calls f(width, whole_block), both constants: packs or single elements, a block or a warp for a row of n.
template <class T, class F>
void with_team(bool packs, std::int64_t n, F f) {
  constexpr std::integral_constant<int, pack_size<T>> wide{};
  constexpr std::integral_constant<int, 1> narrow{};
  if (n > warp_row)
    packs ? f(wide, std::true_type()) : f(narrow, std::true_type());
  else
    packs ? f(wide, std::false_type()) : f(narrow, std::false_type());
}

}  // namespace gyre::kernels::cuda
