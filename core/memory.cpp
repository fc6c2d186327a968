#include "core/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "core/cuda/runtime.h"
#include "core/error.h"
#include "core/file.h"
#include "core/memory_pool.h"

namespace gyre {
namespace {

constexpr std::size_t alignment = 64;

// Never destroyed: tensors of static duration return their memory late.
MemoryPool& pool() {
  alignas(MemoryPool) static std::byte place[sizeof(MemoryPool)];
  static MemoryPool* const instance =
      ::new (place) MemoryPool({"host memory", allocate_from_system, free_to_system});
  return *instance;
}

}  // namespace

void* allocate_from_system(std::size_t bytes) {
  // Large blocks take whole huge pages: fewer faults, and address translation does not slow down strided
  // reads.
  const bool large = bytes >= huge_page;
  void* data = nullptr;
  if (posix_memalign(&data, large ? huge_page : alignment, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (large) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

void free_to_system(void* data) noexcept { std::free(data); }

void* pool_allocate(std::size_t bytes) { return bytes == 0 ? nullptr : pool().allocate(bytes); }

void pool_free(void* data, std::size_t bytes) noexcept {
  if (data != nullptr) pool().free(data, bytes);
}

MemoryStats memory_stats(Device device) {
  return device.is_cuda() ? cuda::memory_stats(device.index) : pool().stats();
}

void reset_peak_memory(Device device) {
  if (device.is_cuda()) return cuda::reset_peak_memory(device.index);
  pool().reset_peak();
}

void release_cached_memory(Device device) {
  if (device.is_cuda()) return cuda::release_cached_memory(device.index);
  pool().release_cached();
#ifdef __GLIBC__
  malloc_trim(0);  // free keeps small blocks in the process
#endif
}

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
