#pragma once

// 16-byte accesses, asynchronous copies into shared memory and atomics.

#include <cstddef>
#include <cstdint>

#include "core/cuda/prim_launch.cuh"
#include "core/cuda/prim_number.cuh"

namespace gyre::prim {

/// 16 bytes of consecutive T.
template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T values[size];

  GYRE_DEVICE T& operator[](int i) { return values[i]; }
  GYRE_DEVICE const T& operator[](int i) const { return values[i]; }
};

/// Loads 16 bytes; `from` is a multiple of 16.
template <class T>
GYRE_DEVICE Pack<T> ld128(const T* from, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return bit_cast<Pack<T>>(*reinterpret_cast<const uint4*>(from));
#else
  simt::require_aligned(from, 16, site);
  return *reinterpret_cast<const Pack<T>*>(from);
#endif
}

/// Stores 16 bytes; `to` is a multiple of 16.
template <class T>
GYRE_DEVICE void st128(T* to, const Pack<T>& pack, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  *reinterpret_cast<uint4*>(to) = bit_cast<uint4>(pack);
#else
  simt::require_aligned(to, 16, site);
  *reinterpret_cast<Pack<T>*>(to) = pack;
#endif
}

/// True where ld128 and st128 may be used: for the checks of launchers.
inline bool aligned16(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

/// Starts to copy 16 bytes from global to shared memory, both multiples of 16; writes zeros and reads nothing
/// where `valid` is false. What arrives is visible to the thread after cp_wait, to its block after a further
/// sync.
GYRE_DEVICE void cp_async16(void* shared, const void* global, bool valid = true,
                            [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(__cvta_generic_to_global(global)), "r"(valid ? 16 : 0)
               : "memory");
#else
  simt::copy_async(shared, global, 16, valid, site);
#endif
}

/// cp_async16 for 4 bytes.
GYRE_DEVICE void cp_async4(void* shared, const void* global, bool valid = true,
                           [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(__cvta_generic_to_global(global)), "r"(valid ? 4 : 0)
               : "memory");
#else
  simt::copy_async(shared, global, 4, valid, site);
#endif
}

/// Makes a group of the thread's copies since the last commit.
GYRE_DEVICE void cp_commit() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  simt::copy_commit();
#endif
}

/// Waits for all but the `pending` latest groups of the thread.
template <int pending>
GYRE_DEVICE void cp_wait() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
  simt::copy_wait(pending);
#endif
}

/// Adds to *address without losing another thread's sum; returns what stood there. Orders no other memory.
/// The order of float sums, and so their rounding, changes from run to run. int, unsigned, unsigned long
/// long, float, double.
template <class T>
GYRE_UNCHECKED GYRE_DEVICE T atomic_add(T* address, T value, [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  return atomicAdd(address, value);
#else
  simt::note_atomic(address, sizeof value, site);
  const T old = *address;
  *address = static_cast<T>(old + value);
  return old;
#endif
}

}  // namespace gyre::prim
