#include "core/cuda/runtime.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "core/cuda/check.h"
#include "core/error.h"
#include "core/memory_pool.h"

namespace gyre::cuda {
namespace {

constexpr int max_devices = 64;
constexpr int least_capability = 80;  // the oldest architecture that kernels are compiled for

void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // an error that can be recovered from must not show up again
  throw_failed_call(call, file, line,
                    fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)),
                    error == cudaErrorMemoryAllocation);
}
#define GYRE_CHECK(call) check(call, #call, __FILE__, __LINE__)

struct Probe {
  int devices = 0;
  std::string reason;  // empty if devices > 0
};

Probe probe_devices() {
  int devices = 0, driver = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) {
    cudaGetLastError();
    if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess) {
      if (driver == 0) return {0, "no NVIDIA driver"};
      return {0, fmt::format("the NVIDIA driver knows CUDA {}.{}, this build needs {}.{}", driver / 1000,
                             driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10)};
    }
    return {0, fmt::format("cudaGetDeviceCount failed: {} ({})", cudaGetErrorString(error),
                           cudaGetErrorName(error))};
  }
  if (devices < 1) return {0, "the NVIDIA driver lists no device"};
  return {std::min(devices, max_devices), ""};
}

const Probe& probe() {
  static const Probe result = probe_devices();
  return result;
}

int attribute(cudaDeviceAttr what, int index) {
  int value = 0;
  GYRE_CHECK(cudaDeviceGetAttribute(&value, what, index));
  return value;
}

int capability(int index) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, index) +
         attribute(cudaDevAttrComputeCapabilityMinor, index);
}

std::atomic<int> newest_device = -1;  // taken into use last

void make_current(int index) {
  constinit static thread_local int current = -1;
  if (current == index) return;
  GYRE_CHECK(cudaSetDevice(index));
  current = index;
}

/// One device in use: its streams, its pool and what was asked of it.
class DeviceState {
 public:
  explicit DeviceState(int index) {
    make_current(index);
    newest_device = index;
    GYRE_CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    GYRE_CHECK(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
    GYRE_CHECK(cudaDeviceGetDefaultMemPool(&pool, index));
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    GYRE_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    // Else an upload could wait for compute work that still uses the block it is given.
    int allow = 0;
    GYRE_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &allow));
  }

  std::uint64_t pool_bytes(cudaMemPoolAttr what) const {
    std::uint64_t bytes = 0;
    GYRE_CHECK(cudaMemPoolGetAttribute(pool, what, &bytes));
    return bytes;
  }

  void count(std::size_t bytes) {
    const std::uint64_t now = pool_bytes(cudaMemPoolAttrReservedMemCurrent);
    const std::lock_guard lock(mutex_);
    stats_.active += bytes;
    stats_.peak = std::max(stats_.peak, stats_.active);
    if (now > reserved_) ++stats_.allocations;
    reserved_ = now;
  }

  void discount(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.active -= bytes;
  }

  MemoryStats stats() {
    const std::uint64_t used = pool_bytes(cudaMemPoolAttrUsedMemCurrent);
    const std::uint64_t reserved = pool_bytes(cudaMemPoolAttrReservedMemCurrent);
    const std::lock_guard lock(mutex_);
    MemoryStats result = stats_;
    result.cached = reserved > used ? reserved - used : 0;
    return result;
  }

  void release_cached() {
    GYRE_CHECK(cudaMemPoolTrimTo(pool, 0));
    const std::uint64_t now = pool_bytes(cudaMemPoolAttrReservedMemCurrent);
    const std::lock_guard lock(mutex_);
    reserved_ = now;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak = stats_.active;
  }

  cudaStream_t compute = nullptr, copy = nullptr;
  cudaMemPool_t pool = nullptr;

 private:
  std::mutex mutex_;
  MemoryStats stats_;
  std::uint64_t reserved_ = 0;
};

// Never destroyed: tensors of static duration return their memory late.
DeviceState& state(int index) {
  static std::array<std::atomic<DeviceState*>, max_devices> states;
  static std::mutex mutex;
  if (index >= 0 && index < max_devices) {
    DeviceState* known = states[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
    if (known != nullptr) [[likely]]
      return *known;
  }
  const std::lock_guard lock(mutex);
  const std::string reason = unavailable_reason(index);
  require<DeviceError>(reason.empty(), "cuda:{} is not available: {}", index, reason);
  auto& slot = states[static_cast<std::size_t>(index)];
  if (slot.load() == nullptr) slot.store(std::make_unique<DeviceState>(index).release());
  return *slot.load();
}

void* allocate_pinned_memory(std::size_t size) {
  void* data = nullptr;
  if (cudaHostAlloc(&data, size, cudaHostAllocPortable) == cudaSuccess) return data;
  cudaGetLastError();
  return nullptr;
}

void free_pinned_memory(void* data) noexcept { cudaFreeHost(data); }

MemoryPool& pinned_pool() {
  alignas(MemoryPool) static std::byte place[sizeof(MemoryPool)];
  static MemoryPool* const instance =
      ::new (place) MemoryPool({"page-locked host memory", allocate_pinned_memory, free_pinned_memory});
  return *instance;
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* handle) { return static_cast<cudaEvent_t>(handle); }

}  // namespace

std::string unavailable_reason(int index) {
  const Probe& found = probe();
  if (!found.reason.empty()) return found.reason;
  if (index < 0 || index >= found.devices)
    return fmt::format("{} CUDA device{} present", found.devices, found.devices == 1 ? "" : "s");
  if (const int has = capability(index); has < least_capability)
    return fmt::format("compute capability {}.{} is below {}.{}", has / 10, has % 10, least_capability / 10,
                       least_capability % 10);
  if (attribute(cudaDevAttrMemoryPoolsSupported, index) == 0) return "its driver has no memory pools";
  return "";
}

int device_count() { return probe().devices; }
bool emulated() { return false; }

DeviceInfo device_info(int index) {
  require<DeviceError>(index >= 0 && index < probe().devices, "cuda:{} is not available: {}", index,
                       unavailable_reason(index));
  cudaDeviceProp properties{};
  GYRE_CHECK(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info{properties.name, 10 * properties.major + properties.minor, properties.multiProcessorCount,
                  properties.totalGlobalMem};
  GYRE_CHECK(cudaRuntimeGetVersion(&info.runtime_version));
  GYRE_CHECK(cudaDriverGetVersion(&info.driver_version));
  return info;
}

void* compute_stream(int index) {
  DeviceState& device = state(index);
  make_current(index);
  return device.compute;
}

void* copy_stream(int index) {
  DeviceState& device = state(index);
  make_current(index);
  return device.copy;
}

void synchronize(int index) {
  synchronize(compute_stream(index));
  synchronize(copy_stream(index));
}

void synchronize(void* stream) { GYRE_CHECK(cudaStreamSynchronize(stream_of(stream))); }

void* allocate(std::size_t bytes, int index, void* stream) {
  DeviceState& device = state(index);
  if (bytes == 0) return nullptr;
  make_current(index);
  void* data = nullptr;
  cudaError_t error = cudaMallocFromPoolAsync(&data, bytes, device.pool, stream_of(stream));
  if (error == cudaErrorMemoryAllocation) {
    // Blocks whose free waits for work, and cached ones of other sizes, come back first.
    cudaGetLastError();
    release_cached_memory(index);
    error = cudaMallocFromPoolAsync(&data, bytes, device.pool, stream_of(stream));
  }
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    GYRE_CHECK(cudaMemGetInfo(&free, &total));
    throw OutOfMemoryError(
        fmt::format("cannot allocate {} bytes on cuda:{}: {} bytes in use, {} of {} bytes free", bytes, index,
                    device.stats().active, free, total));
  }
  check(error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
  device.count(bytes);
  return data;
}

void deallocate(void* data, std::size_t bytes, int index) noexcept {
  if (data == nullptr) return;
  DeviceState& device = state(index);
  // Fails only where the process ends or after an error that has been reported.
  if (cudaFreeAsync(data, device.compute) != cudaSuccess) cudaGetLastError();
  device.discount(bytes);
}

MemoryStats memory_stats(int index) { return state(index).stats(); }
void reset_peak_memory(int index) { state(index).reset_peak(); }
void release_cached_memory(int index) {
  synchronize(index);  // what is freed but still in use counts as well
  state(index).release_cached();
}

void* pinned_allocate(std::size_t bytes) {
  if (device_count() == 0) return pool_allocate(bytes);
  // Else a loader thread, which has no device of its own, would wake the first one.
  if (const int index = newest_device; index >= 0) make_current(index);
  return bytes == 0 ? nullptr : pinned_pool().allocate(bytes);
}

void pinned_deallocate(void* data, std::size_t bytes) noexcept {
  if (device_count() == 0) return pool_free(data, bytes);
  if (data != nullptr) pinned_pool().free(data, bytes);
}

void copy_async(void* to, const void* from, std::size_t bytes, void* stream) {
  if (bytes > 0) GYRE_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
}

Event::Event(int index, bool timed) {
  state(index);
  make_current(index);
  cudaEvent_t event = nullptr;
  GYRE_CHECK(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  handle_ = event;
}

Event::~Event() {
  if (handle_ != nullptr) cudaEventDestroy(event_of(handle_));
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

void Event::record(void* stream) { GYRE_CHECK(cudaEventRecord(event_of(handle_), stream_of(stream))); }
void Event::hold(void* stream) const {
  GYRE_CHECK(cudaStreamWaitEvent(stream_of(stream), event_of(handle_), 0));
}

bool Event::done() const {
  const cudaError_t status = cudaEventQuery(event_of(handle_));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, "cudaEventQuery", __FILE__, __LINE__);
  return true;
}

void Event::synchronize() const { GYRE_CHECK(cudaEventSynchronize(event_of(handle_))); }

double Event::since(const Event& start) const {
  float milliseconds = 0;
  GYRE_CHECK(cudaEventElapsedTime(&milliseconds, event_of(start.handle_), event_of(handle_)));
  return static_cast<double>(milliseconds);
}

}  // namespace gyre::cuda
