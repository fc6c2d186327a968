#pragma once

#include <cstddef>
#include <cstdint>

/// What the host forms of the primitives (core/cuda/prim.cuh) ask of the SIMT emulator, which lives in
/// tests/simt.
namespace gyre::simt {

/// A line of a kernel; as a default argument, the line of the caller.
struct Site {
  const char* file;
  int line;

  constexpr Site(const char* f = __builtin_FILE(), int l = __builtin_LINE()) : file(f), line(l) {}
};

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

/// What a kernel sees of the thread that runs it.
struct Thread {
  Index thread, block, block_size, grid_size;
};

/// The thread that runs now; valid inside kernels only.
extern const Thread* current;

/// Dynamic shared memory of the running block.
void* shared_memory();

/// Waits for every thread of the block.
void barrier(Site site);
/// Waits for every thread of the warp.
void warp_barrier(Site site);

inline constexpr int warp_size = 32;

/// What a lane gives to its warp.
struct alignas(16) Slot {
  unsigned char bytes[32];
};
/// Waits for every lane of the warp; returns what the 32 lanes gave, valid until the lane's next exchange.
/// `what` names the collective and must be the same in all lanes. At most 32 bytes.
const Slot* exchange(const char* what, Site site, const void* value, std::size_t size);

/// cp.async: `size` bytes from global to shared memory, zeros where `valid` is false.
void copy_async(void* shared, const void* global, std::size_t size, bool valid, Site site);
void copy_commit();
/// Completes all but the `pending` latest groups of the thread.
void copy_wait(int pending);

/// Announces an atomic access.
void note_atomic(const void* address, std::size_t size, Site site);
/// Ends the kernel unless `address` is a multiple of `alignment`.
void require_aligned(const void* address, std::size_t alignment, Site site);

/// A kernel with its arguments, `size` bytes at `object`.
struct Call {
  void (*run)(const void* object);
  const void* object;
  std::size_t size;
};
/// Runs every thread of the grid; throws simt::Fault where the kernel breaks a rule.
void launch(const char* name, Call call, Index grid, unsigned block, std::size_t shared_bytes);

}  // namespace gyre::simt
