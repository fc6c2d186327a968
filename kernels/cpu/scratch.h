#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/memory.h"

namespace gyre::kernels::cpu {

/// Uninitialised memory from the tensor pool while alive.
template <class T>
class ScratchBuffer {
 public:
  explicit ScratchBuffer(std::int64_t count)
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)), data_(static_cast<T*>(pool_allocate(bytes_))) {}
  ~ScratchBuffer() { pool_free(data_, bytes_); }
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;
  T* data() const { return data_; }

 private:
  std::size_t bytes_;
  T* data_;
};

/// The huge page (2 MB) that the calling thread keeps for its next call; nullptr for more bytes, or while it
/// is taken.
void* take_kept_scratch(std::size_t bytes);
void give_kept_scratch() noexcept;

/// A ScratchBuffer of one task, destroyed by the thread that made it: blocks of the pool wander from thread
/// to thread, and their lines from cache to cache.
template <class T>
class ThreadScratch {
 public:
  explicit ThreadScratch(std::int64_t count)
      : kept_(static_cast<T*>(take_kept_scratch(static_cast<std::size_t>(count) * sizeof(T)))) {
    if (!kept_) pooled_.emplace(count);
  }
  ~ThreadScratch() {
    if (kept_) give_kept_scratch();
  }
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;
  T* data() const { return kept_ ? kept_ : pooled_->data(); }

 private:
  T* kept_;
  std::optional<ScratchBuffer<T>> pooled_;
};

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace gyre::kernels::cpu
