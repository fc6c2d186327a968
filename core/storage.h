#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace gyre {

/// Numbers that never repeat within a process; equal versions mean equal contents (docs/math.md section 4).
std::uint64_t next_version();

/// Where the CPU keeps memory: `pinned` is page-locked where a CUDA device answers, for copies that overlap.
enum class HostMemory { plain, pinned };

/// A block of memory with a content version; taking mutable access renews the version.
class Storage {
 public:
  /// `bytes` of uninitialised memory, 64-byte aligned, from the device's pool. Throws DeviceError for a
  /// missing device.
  Storage(std::size_t bytes, Device device);
  /// As above, on the CPU.
  Storage(std::size_t bytes, HostMemory memory);
  /// CUDA memory that is ready for what `stream` runs next (core/cuda/runtime.h).
  Storage(std::size_t bytes, Device device, void* stream);
  /// Memory owned elsewhere (a mapped file); `owner` keeps it alive. Read-only: mutable_data throws.
  Storage(const void* data, std::size_t bytes, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  const void* data() const { return data_; }
  void* mutable_data();
  bool is_pinned() const { return kind_ == Kind::pinned; }

 private:
  enum class Kind { plain, pinned, cuda, foreign };

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  std::shared_ptr<const void> owner_;
  Kind kind_ = Kind::plain;
  std::atomic<std::uint64_t> version_;
};

}  // namespace gyre
