#pragma once

// Barriers and what the threads of a warp or block compute together.

#include <cstring>

#include "core/cuda/prim_launch.cuh"
#include "core/cuda/prim_number.cuh"

namespace gyre::prim {

/// Waits for every thread of the block; what they wrote before is visible after.
GYRE_DEVICE void sync([[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  __syncthreads();
#else
  simt::barrier(site);
#endif
}

/// Waits for every lane of the warp; what they wrote before is visible after.
GYRE_DEVICE void sync_warp([[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  __syncwarp();
#else
  simt::warp_barrier(site);
#endif
}

#ifndef __CUDACC__
/// What lane `source` gave.
template <class T>
T slot(const simt::Slot* slots, unsigned source) {
  static_assert(sizeof(T) <= sizeof(simt::Slot));
  T value;
  std::memcpy(&value, slots[source].bytes, sizeof value);
  return value;
}
#endif

/// The value of lane `source` modulo 32. Shuffles take int, unsigned, long long, float and double and order
/// no memory.
template <class T>
GYRE_DEVICE T shfl(T value, int source, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return __shfl_sync(0xFFFFFFFFU, value, source);
#else
  return slot<T>(simt::exchange("shfl", site, &value, sizeof value), static_cast<unsigned>(source) % 32);
#endif
}

/// The value of lane (own lane xor mask), mask < 32.
template <class T>
GYRE_DEVICE T shfl_xor(T value, int mask, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return __shfl_xor_sync(0xFFFFFFFFU, value, mask);
#else
  const auto* const slots = simt::exchange("shfl_xor", site, &value, sizeof value);
  return slot<T>(slots, (threadIdx.x ^ static_cast<unsigned>(mask)) % 32);
#endif
}

/// The value of lane (own lane + delta); beyond lane 31 the own value.
template <class T>
GYRE_DEVICE T shfl_down(T value, unsigned delta, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return __shfl_down_sync(0xFFFFFFFFU, value, delta);
#else
  const auto* const slots = simt::exchange("shfl_down", site, &value, sizeof value);
  const unsigned own = threadIdx.x % 32, source = own + delta;
  return slot<T>(slots, source < 32 ? source : own);
#endif
}

/// The value of lane (own lane - delta); below lane 0 the own value.
template <class T>
GYRE_DEVICE T shfl_up(T value, unsigned delta, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return __shfl_up_sync(0xFFFFFFFFU, value, delta);
#else
  const auto* const slots = simt::exchange("shfl_up", site, &value, sizeof value);
  const unsigned own = threadIdx.x % 32;
  return slot<T>(slots, delta <= own ? own - delta : own);
#endif
}

/// Bit i is set where lane i gives true.
GYRE_DEVICE unsigned ballot(bool condition, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return __ballot_sync(0xFFFFFFFFU, condition);
#else
  const auto* const slots = simt::exchange("ballot", site, &condition, sizeof condition);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= static_cast<unsigned>(slot<bool>(slots, i)) << i;
  return bits;
#endif
}

struct Sum {
  template <class T>
  GYRE_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger one; a NaN stays.
struct Max {
  template <class T>
  GYRE_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/// Combines the values of all lanes by a tree of fixed order; every lane gets the same bits.
template <class T, class Combine>
GYRE_DEVICE T warp_reduce(T value, Combine combine, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  GYRE_UNROLL
  for (int mask = 16; mask > 0; mask /= 2) value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, mask));
  return value;
#else
  const auto* const slots = simt::exchange("warp_reduce", site, &value, sizeof value);
  T values[32];
  for (unsigned i = 0; i < 32; ++i) values[i] = slot<T>(slots, i);
  for (int half = 16; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) values[i] = combine(values[i], values[i + half]);
  return values[0];
#endif
}

/// The sum over the warp, in every lane.
template <class T>
GYRE_DEVICE T warp_sum(T value, Site site = {}) {
  return warp_reduce(value, Sum(), site);
}
/// The maximum over the warp, in every lane; NaN if a value is NaN.
template <class T>
GYRE_DEVICE T warp_max(T value, Site site = {}) {
  return warp_reduce(value, Max(), site);
}

/// Combines over the block; every thread gets the same bits. `scratch`: shared memory of one T per warp, free
/// again on return. `neutral` changes nothing when combined.
template <class T, class Combine>
GYRE_DEVICE T block_reduce(T value, Combine combine, T neutral, T* scratch, Site site = {}) {
  value = warp_reduce(value, combine, site);
  if (lane() == 0) scratch[warp()] = value;
  sync(site);
  value = warp_reduce(lane() < warps() ? scratch[lane()] : neutral, combine, site);
  sync(site);
  return value;
}

/// The sum over the block, in every thread; `scratch` as in block_reduce.
template <class T>
GYRE_DEVICE T block_sum(T value, T* scratch, Site site = {}) {
  return block_reduce(value, Sum(), T(0), scratch, site);
}
/// The maximum over the block, in every thread; `scratch` as in block_reduce.
template <class T>
GYRE_DEVICE T block_max(T value, T* scratch, Site site = {}) {
  return block_reduce(value, Max(), static_cast<T>(-HUGE_VAL), scratch, site);
}

}  // namespace gyre::prim
