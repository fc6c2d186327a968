#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace gyre {

/// Numbers that never repeat within a process; equal versions mean equal contents (docs/math.md section 4).
std::uint64_t next_version();

/// A block of memory with a content version; taking mutable access renews the version.
class Storage {
 public:
  /// `bytes` of uninitialised memory, 64-byte aligned, from the device's pool. Throws DeviceError for a
  /// missing device.
  Storage(std::size_t bytes, Device device);
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

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  std::shared_ptr<const void> owner_;
  bool read_only_ = false;
  std::atomic<std::uint64_t> version_;
};

}  // namespace gyre
