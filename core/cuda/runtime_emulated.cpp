#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "core/cuda/runtime.h"
#include "core/error.h"
#include "core/memory_pool.h"

// Device memory is host memory and every stream runs at once. Two devices, so that mixing them is noticed.
namespace gyre::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int devices = 2;
constexpr std::size_t device_memory = std::size_t{4} << 30;  // each
constexpr std::size_t most_poisoned = std::size_t{64} << 20;

void* allocate_device_memory(std::size_t size) {
  void* data = nullptr;
  if (size > device_memory) return nullptr;
  return posix_memalign(&data, 256, size) == 0 ? data : nullptr;
}

void free_device_memory(void* data) noexcept { std::free(data); }

constexpr MemorySource source{"device memory", allocate_device_memory, free_device_memory};

struct EmulatedDevice {
  MemoryPool pool{source};
  char compute = 0, copy = 0;  // their addresses stand for the streams
};

// Never destroyed: tensors of static duration return their memory late.
EmulatedDevice& device(int index) {
  require<DeviceError>(index >= 0 && index < devices, "cuda:{} is not available: {}", index,
                       unavailable_reason(index));
  alignas(EmulatedDevice) static std::byte place[devices][sizeof(EmulatedDevice)];
  static EmulatedDevice* const instances[devices] = {::new (place[0]) EmulatedDevice,
                                                     ::new (place[1]) EmulatedDevice};
  return *instances[index];
}

Clock::time_point& time_of(void* handle) { return *static_cast<Clock::time_point*>(handle); }

}  // namespace

std::string unavailable_reason(int index) {
  return index < devices ? "" : fmt::format("{} CUDA devices present", devices);
}
int device_count() { return devices; }
bool emulated() { return true; }
DeviceInfo device_info(int index) {
  device(index);
  return {"emulated", 80, 1, device_memory, 0, 0};
}

void* compute_stream(int index) { return &device(index).compute; }
void* copy_stream(int index) { return &device(index).copy; }
void synchronize(int index) { device(index); }
void synchronize(void*) {}

void* allocate(std::size_t bytes, int index, void*) {
  EmulatedDevice& at = device(index);
  if (bytes == 0) return nullptr;
  const MemoryStats stats = at.pool.stats();
  try {
    require(bytes <= device_memory - std::min(stats.active, device_memory), "the device is full");
    void* data = at.pool.allocate(bytes);
    // NaN in every floating type: what is read must have been written. Larger blocks only fill the device.
    std::memset(data, 0xff, std::min(bytes, most_poisoned));
    return data;
  } catch (const Error&) {
    throw OutOfMemoryError(
        fmt::format("cannot allocate {} bytes on cuda:{}: {} bytes in use, {} of {} bytes free", bytes, index,
                    stats.active, device_memory - stats.active, device_memory));
  }
}

void deallocate(void* data, std::size_t bytes, int index) noexcept {
  if (data != nullptr) device(index).pool.free(data, bytes);
}

MemoryStats memory_stats(int index) { return device(index).pool.stats(); }
void reset_peak_memory(int index) { device(index).pool.reset_peak(); }
void release_cached_memory(int index) { device(index).pool.release_cached(); }

void* pinned_allocate(std::size_t bytes) { return pool_allocate(bytes); }
void pinned_deallocate(void* data, std::size_t bytes) noexcept { pool_free(data, bytes); }

void copy_async(void* to, const void* from, std::size_t bytes, void*) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

Event::Event(int index, bool) {
  device(index);
  handle_ = std::make_unique<Clock::time_point>().release();
}
Event::~Event() { std::unique_ptr<Clock::time_point>(static_cast<Clock::time_point*>(handle_)); }
Event& Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}
void Event::record(void*) { time_of(handle_) = Clock::now(); }
void Event::hold(void*) const {}
bool Event::done() const { return true; }
void Event::synchronize() const {}
double Event::since(const Event& start) const {
  return std::chrono::duration<double, std::milli>(time_of(handle_) - time_of(start.handle_)).count();
}

}  // namespace gyre::cuda
