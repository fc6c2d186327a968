#pragma once

// Kernels, their indices, their shared memory and their launch.

#include <cmath>
#include <cstdint>

#include "core/cuda/launch.h"

#ifdef __CUDACC__

/// The head of a kernel: at most so many threads a block; a second argument asks for blocks per
/// multiprocessor.
#define GYRE_KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
/// A function of kernels.
#define GYRE_DEVICE __device__ __forceinline__
/// A function of kernels and of launchers.
#define GYRE_HOST_DEVICE __host__ __device__ __forceinline__
#define GYRE_UNROLL _Pragma("unroll")
/// A function whose accesses the emulator is told of by itself.
#define GYRE_UNCHECKED
/// The dynamic shared memory of the block as `type* name`, on a 16-byte boundary.
#define GYRE_SHARED(type, name)                                       \
  extern __shared__ __align__(16) unsigned char gyre_shared_memory[]; \
  type* const name = reinterpret_cast<type*>(gyre_shared_memory)

namespace gyre::prim {
struct Site {};  // a line of a kernel: only the emulator asks
}  // namespace gyre::prim

#else

#include <cstddef>
#include <tuple>
#include <utility>

#include "core/cuda/simt.h"

#define GYRE_KERNEL(...) void
#define GYRE_DEVICE inline
#define GYRE_HOST_DEVICE inline
#define GYRE_UNROLL
#define GYRE_UNCHECKED __attribute__((no_sanitize("thread")))
#define GYRE_SHARED(type, name) type* const name = static_cast<type*>(::gyre::simt::shared_memory())
#define threadIdx (::gyre::simt::current->thread)
#define blockIdx (::gyre::simt::current->block)
#define blockDim (::gyre::simt::current->block_size)
#define gridDim (::gyre::simt::current->grid_size)

namespace gyre::prim {
using simt::Site;
}  // namespace gyre::prim

#endif

/// Launches `kernel` on `grid` (prim::Grid) blocks of `block` threads, a multiple of 32, with `shared` bytes
/// of shared memory. Nothing happens for an empty grid; throws DeviceError if the launch fails. A kernel
/// whose name has commas stands in parentheses.
#define GYRE_LAUNCH(kernel, grid, block, shared, stream, ...)                                          \
  ::gyre::prim::launch(::gyre::cuda::Launch{#kernel, __FILE__, __LINE__}, kernel, grid, block, shared, \
                       stream, __VA_ARGS__)

namespace gyre::prim {

/// Blocks of a launch: x up to 2^31 - 1, y and z up to 65535.
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
};

/// Blocks that cover n items, `size` items each.
GYRE_HOST_DEVICE constexpr std::int64_t blocks(std::int64_t n, std::int64_t size) {
  return (n + size - 1) / size;
}

inline constexpr int warp_size = 32;
inline constexpr std::int64_t max_shared_bytes = 227 * 1024;

GYRE_DEVICE int lane() { return static_cast<int>(threadIdx.x % warp_size); }
/// Number of the thread's warp in its block.
GYRE_DEVICE int warp() { return static_cast<int>(threadIdx.x / warp_size); }
GYRE_DEVICE int warps() { return static_cast<int>(blockDim.x / warp_size); }
/// Number of the thread in the grid, along x.
GYRE_DEVICE std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
/// Threads of the grid, along x.
GYRE_DEVICE std::int64_t global_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

inline bool check_launch(const cuda::Launch& where, Grid grid, int block, std::int64_t shared) {
  if (grid.x < 0 || grid.y < 0 || grid.z < 0 || grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535)
    cuda::fail_launch(where, "the grid exceeds 2147483647 x 65535 x 65535 blocks");
  if (block < warp_size || block > 1024 || block % warp_size != 0)
    cuda::fail_launch(where, "the block is not 32, 64, … 1024 threads");
  if (shared < 0 || shared > max_shared_bytes) cuda::fail_launch(where, "more than 227 KiB of shared memory");
  return grid.x > 0 && grid.y > 0 && grid.z > 0;
}

#ifdef __CUDACC__

template <class... P, class... A>
void launch(const cuda::Launch& where, void (*kernel)(P...), Grid grid, int block, std::int64_t shared,
            void* stream, A&&... arguments) {
  if (!check_launch(where, grid, block, shared)) return;
  const auto check = [&](cudaError_t error) {
    if (error == cudaSuccess) return;
    (void)cudaGetLastError();
    // The first launch of a kernel loads its code, which may find no room.
    cuda::fail_launch(where, cudaGetErrorString(error), error == cudaErrorMemoryAllocation);
  };
  const void* const function = reinterpret_cast<const void*>(kernel);
  const auto bytes = static_cast<int>(shared);
  if (bytes > 48 * 1024)
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const dim3 size(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                  static_cast<unsigned>(grid.z));
  const auto start = [&](P... values) {
    void* pointers[] = {&values..., nullptr};
    return cudaLaunchKernel(function, size, dim3(static_cast<unsigned>(block)), pointers,
                            static_cast<std::size_t>(bytes), static_cast<cudaStream_t>(stream));
  };
  check(start(static_cast<A&&>(arguments)...));
}

#else

template <class... P, class... A>
void launch(const cuda::Launch& where, void (*kernel)(P...), Grid grid, int block, std::int64_t shared, void*,
            A&&... arguments) {
  if (!check_launch(where, grid, block, shared)) return;
  using Bound = std::pair<void (*)(P...), std::tuple<P...> >;
  const auto bind = [&](P... values) { return Bound(kernel, std::tuple<P...>(values...)); };
  const Bound bound = bind(static_cast<A&&>(arguments)...);
  const auto run = [](const void* object) {
    const Bound& call = *static_cast<const Bound*>(object);
    std::apply(call.first, call.second);
  };
  simt::launch(where.kernel, {run, &bound, sizeof bound},
               {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
               static_cast<unsigned>(block), static_cast<std::size_t>(shared));
}

#endif

}  // namespace gyre::prim
