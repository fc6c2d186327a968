#pragma once

#include <cstddef>

#include "core/device.h"

namespace gyre {

/// Bytes handed out by the tensor pool of a device.
struct MemoryStats {
  std::size_t active = 0;       ///< in use now
  std::size_t cached = 0;       ///< free, kept for reuse
  std::size_t peak = 0;         ///< highest `active` since the last reset
  std::size_t allocations = 0;  ///< requests that reached the operating system or driver
};

constexpr std::size_t huge_page = std::size_t{2} << 20;  // bytes

/// Aligned to 64 bytes, blocks of a huge page or more to huge pages; nullptr where there is no memory.
void* allocate_from_system(std::size_t bytes);
void free_to_system(void* data) noexcept;

/// Size-classed cache over aligned host memory: steady-state training allocates nothing from the system.
void* pool_allocate(std::size_t bytes);
void pool_free(void* data, std::size_t bytes) noexcept;
MemoryStats memory_stats(Device device = {});
void reset_peak_memory(Device device = {});
/// Returns all cached blocks to the operating system or driver.
void release_cached_memory(Device device = {});
/// Peak resident set of the process in MB (1e6 bytes).
double peak_resident_mb();
/// Current resident set of the process in MB (1e6 bytes).
double resident_mb();

}  // namespace gyre
