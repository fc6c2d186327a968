#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/cuda/runtime.h"

namespace gyre::simt {

/// The Buffer of tests/simt/support.h in the memory of a GPU, with bytes on both sides that must not change.
template <class T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values, std::size_t offset = 0)
      : Buffer(values.size(), offset, values.data()) {}
  static Buffer output(std::size_t size, std::size_t offset = 0) { return Buffer(size, offset, nullptr); }
  ~Buffer() {
    const std::vector<unsigned char> all = download();
    const auto touched = [](unsigned char byte) { return byte != 0xFF; };
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(start_);
    EXPECT_TRUE(std::none_of(all.begin(), first, touched) &&
                std::none_of(first + static_cast<std::ptrdiff_t>(bytes()), all.end(), touched))
        << "a kernel wrote beside a buffer of " << size_ << " elements";
    gyre::cuda::deallocate(memory_, total_, 0);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_ + start_); }
  std::size_t size() const { return size_; }
  std::vector<T> values() const {
    const std::vector<unsigned char> all = download();
    std::vector<T> result(size_);
    if (size_ > 0) std::memcpy(result.data(), all.data() + start_, bytes());
    return result;
  }

 private:
  static constexpr std::size_t margin = 256;

  Buffer(std::size_t size, std::size_t offset, const T* values)
      : size_(size),
        start_(margin + offset * sizeof(T)),
        total_(start_ + bytes() + margin),
        memory_(static_cast<unsigned char*>(gyre::cuda::allocate(total_, 0, nullptr))) {
    std::vector<unsigned char> all(total_, 0xFF);
    if (values != nullptr && size > 0) std::memcpy(all.data() + start_, values, bytes());
    gyre::cuda::copy_async(memory_, all.data(), total_, nullptr);
    gyre::cuda::synchronize(nullptr);
  }
  std::vector<unsigned char> download() const {
    std::vector<unsigned char> all(total_);
    gyre::cuda::copy_async(all.data(), memory_, total_, nullptr);
    gyre::cuda::synchronize(nullptr);
    return all;
  }
  std::size_t bytes() const { return size_ * sizeof(T); }

  std::size_t size_, start_, total_;
  unsigned char* memory_;
};

/// Runs `test` once: a GPU has its own schedule.
template <class F>
void in_all_schedules(F test) {
  test();
}

}  // namespace gyre::simt
