#include "core/memory_pool.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>

#include "core/error.h"
#include "core/poison.h"

namespace gyre {
namespace {

constexpr std::size_t alignment = 64;

// Eight classes per power of two: at most 12.5 % of a request is wasted beyond its last cache line.
std::size_t class_size(std::size_t bytes, const char* name) {
  require(bytes <= std::numeric_limits<std::size_t>::max() / 4, "cannot allocate {} bytes of {}", bytes,
          name);
  const std::size_t step = std::max(alignment, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* MemoryPool::allocate(std::size_t bytes) {
  const std::size_t size = class_size(bytes, source_.name);
  const std::lock_guard lock(mutex_);
  void* data = take_cached(size);
  if (data == nullptr) data = allocate_from_source(size);
  if (data == nullptr) {
    release();
    data = allocate_from_source(size);
  }
  require(data != nullptr, "cannot allocate {} bytes of {}: {} bytes in use", bytes, source_.name,
          stats_.active);
  stats_.active += size;
  stats_.peak = std::max(stats_.peak, stats_.active);
  unhide(data, bytes);
  return data;
}

void MemoryPool::free(void* data, std::size_t bytes) noexcept {
  const std::size_t size = class_size(bytes, source_.name);
  const std::lock_guard lock(mutex_);
  stats_.active -= size;
  try {
    free_[size].push_back(data);
    stats_.cached += size;
    hide(data, size);
  } catch (const std::bad_alloc&) {
    unhide(data, size);
    source_.free(data);
  }
}

MemoryStats MemoryPool::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void MemoryPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.active;
}

void MemoryPool::release_cached() {
  const std::lock_guard lock(mutex_);
  release();
}

void* MemoryPool::take_cached(std::size_t size) {
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* data = found->second.back();
  found->second.pop_back();
  stats_.cached -= size;
  return data;
}

void* MemoryPool::allocate_from_source(std::size_t size) {
  void* data = source_.allocate(size);
  if (data == nullptr) return nullptr;
  ++stats_.allocations;
  hide(data, size);
  return data;
}

void MemoryPool::release() {
  for (const auto& [size, blocks] : free_) {
    for (void* data : blocks) {
      unhide(data, size);
      source_.free(data);
    }
  }
  free_.clear();
  stats_.cached = 0;
}

}  // namespace gyre
