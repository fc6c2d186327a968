#include "core/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "core/file.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace gyre {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// Eight classes per power of two: at most 12.5 % of a request is wasted beyond its last cache line.
std::size_t class_size(std::size_t bytes) {
  require(bytes <= std::numeric_limits<std::size_t>::max() / 4, "cannot allocate {} bytes of host memory",
          bytes);
  const std::size_t step = std::max(alignment, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

// Cached blocks are off limits for AddressSanitizer, so that the cache hides no use after free.
void hide([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}
void unhide([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

class Pool {
 public:
  void* allocate(std::size_t bytes) {
    const std::size_t size = class_size(bytes);
    const std::lock_guard lock(mutex_);
    void* data = take_cached(size);
    if (data == nullptr) data = allocate_from_system(size);
    if (data == nullptr) {
      release();
      data = allocate_from_system(size);
    }
    require(data != nullptr, "cannot allocate {} bytes of host memory: {} bytes in use", bytes,
            stats_.active);
    stats_.active += size;
    stats_.peak = std::max(stats_.peak, stats_.active);
    unhide(data, bytes);
    return data;
  }

  void free(void* data, std::size_t bytes) noexcept {
    const std::size_t size = class_size(bytes);
    const std::lock_guard lock(mutex_);
    stats_.active -= size;
    try {
      free_[size].push_back(data);
      stats_.cached += size;
      hide(data, size);
    } catch (const std::bad_alloc&) {
      unhide(data, size);
      std::free(data);
    }
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak = stats_.active;
  }

  void release_cached() {
    const std::lock_guard lock(mutex_);
    release();
  }

 private:
  void* take_cached(std::size_t size) {
    const auto found = free_.find(size);
    if (found == free_.end() || found->second.empty()) return nullptr;
    void* data = found->second.back();
    found->second.pop_back();
    stats_.cached -= size;
    return data;
  }

  void* allocate_from_system(std::size_t size) {
    // Large blocks take whole huge pages: fewer faults, and address translation does not slow down strided
    // reads.
    const bool large = size >= huge_page;
    void* data = nullptr;
    if (posix_memalign(&data, large ? huge_page : alignment, size) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
    if (large) madvise(data, size, MADV_HUGEPAGE);
#endif
    ++stats_.allocations;
    hide(data, size);
    return data;
  }

  void release() {
    for (const auto& [size, blocks] : free_) {
      for (void* data : blocks) {
        unhide(data, size);
        std::free(data);
      }
    }
    free_.clear();
    stats_.cached = 0;
#ifdef __GLIBC__
    malloc_trim(0);  // free keeps small blocks in the process
#endif
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  MemoryStats stats_;
};

// Never destroyed: tensors of static duration return their memory late.
Pool& pool() {
  alignas(Pool) static std::byte place[sizeof(Pool)];
  static Pool* const instance = ::new (place) Pool;
  return *instance;
}

}  // namespace

void* pool_allocate(std::size_t bytes) { return bytes == 0 ? nullptr : pool().allocate(bytes); }

void pool_free(void* data, std::size_t bytes) noexcept {
  if (data != nullptr) pool().free(data, bytes);
}

MemoryStats memory_stats() { return pool().stats(); }
void reset_peak_memory() { pool().reset_peak(); }
void release_cached_memory() { pool().release_cached(); }

double peak_resident_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;  // Linux counts in KiB
}

double resident_mb() {
  const std::string text = read_file("/proc/self/statm");  // "total resident …" in pages
  const char* last = text.data() + text.size();
  const char* first = std::find(text.data(), last, ' ') + 1;
  std::int64_t pages = 0;
  require(first < last && std::from_chars(first, last, pages).ec == std::errc(),
          "/proc/self/statm: unexpected content '{}'", text);
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace gyre
