#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/memory.h"

// The part of the CUDA runtime that gyre uses, free of CUDA headers. Three implementations: for NVIDIA
// devices (runtime_cuda.cpp), for the emulator that the tests run on (runtime_emulated.cpp), and for builds
// without CUDA (runtime_none.cpp). Every failing call throws DeviceError with call, file, line and the
// runtime's text. Streams are `void*` (a cudaStream_t), as kernels take them.
namespace gyre::cuda {

/// Why device `index` cannot be used ("built without CUDA", "no NVIDIA driver"), or empty if it can.
std::string unavailable_reason(int index = 0);
/// 0 where none can be used.
int device_count();
/// Kernels run on the CPU, in the emulator of the tests.
bool emulated();

struct DeviceInfo {
  std::string name;    ///< "NVIDIA H200", or "emulated"
  int capability = 0;  ///< 90 for compute capability 9.0
  int multiprocessors = 0;
  std::size_t memory = 0;   ///< bytes
  int runtime_version = 0;  ///< 13000 for CUDA 13.0
  int driver_version = 0;   ///< the newest CUDA that the driver knows
};
DeviceInfo device_info(int index);

/// The stream on which the operations of a device run in order; the device becomes current on this thread.
void* compute_stream(int index);
/// The stream of uploads that overlap with compute; the device becomes current on this thread.
void* copy_stream(int index);
/// Waits for all work of both streams; throws what a kernel failed with.
void synchronize(int index);
/// Waits for the work given to one stream so far.
void synchronize(void* stream);

/// Memory from the device's pool, ready for what `stream` runs next; nullptr for 0 bytes. The pool keeps what
/// is freed. Throws OutOfMemoryError with the bytes wanted, in use and free where the device has too little.
void* allocate(std::size_t bytes, int index, void* stream);
/// Free after the work given to the compute stream so far, which must come after all other use.
void deallocate(void* data, std::size_t bytes, int index) noexcept;
/// `active` and `peak` count the bytes asked for, `cached` what the pool holds beyond what is in use.
MemoryStats memory_stats(int index);
void reset_peak_memory(int index);
/// Waits for the device first.
void release_cached_memory(int index);

/// Page-locked host memory from a cache, for copies that run beside the host; plain memory where no device
/// can be used.
void* pinned_allocate(std::size_t bytes);
void pinned_deallocate(void* data, std::size_t bytes) noexcept;

/// Between host and device or within them, in the order of `stream`. Returns at once for page-locked host
/// memory, which must stay as it is until the copy is done; pageable sources may be written again right away.
void copy_async(void* to, const void* from, std::size_t bytes, void* stream);

/// A point in the work of a stream.
class Event {
 public:
  explicit Event(int index, bool timed = false);
  ~Event();
  Event(Event&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&& other) noexcept;

  /// Marks the work given to `stream` so far.
  void record(void* stream);
  /// Work given to `stream` from now on runs after the marked work.
  void hold(void* stream) const;
  bool done() const;
  void synchronize() const;
  /// Milliseconds between two timed events, both done.
  double since(const Event& start) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace gyre::cuda
