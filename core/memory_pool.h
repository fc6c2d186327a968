#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "core/memory.h"

namespace gyre {

/// Where a MemoryPool gets its blocks.
struct MemorySource {
  const char* name;                      ///< for errors: "host memory"
  void* (*allocate)(std::size_t bytes);  ///< null where there is none
  void (*free)(void* data) noexcept;
};

/// Size-classed cache of blocks, safe for threads; the sizes given back must be those asked for.
class MemoryPool {
 public:
  explicit MemoryPool(const MemorySource& source) : source_(source) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Throws Error where neither the cache nor the source has `bytes`.
  void* allocate(std::size_t bytes);
  void free(void* data, std::size_t bytes) noexcept;
  MemoryStats stats();
  void reset_peak();
  void release_cached();

 private:
  void* take_cached(std::size_t size);
  void* allocate_from_source(std::size_t size);
  void release();

  MemorySource source_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  MemoryStats stats_;
};

}  // namespace gyre
