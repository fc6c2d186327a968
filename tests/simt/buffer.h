#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tests/simt/emulator/emulator.h"
#include "tests/simt/emulator/fiber.h"

namespace gyre::simt {

/// Device memory of a test: ends at a page without access (within the 15 bytes that alignment takes) and is
/// surrounded by bytes that must not change. The checked build lets kernels touch nothing else.
template <class T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values, std::size_t offset = 0)
      : Buffer(values.size(), offset, true) {
    if (!values.empty()) std::memcpy(begin_, values.data(), bytes());
  }
  /// Poisoned with NaN; reading it before it is written is a fault. `offset` moves the start from its 16-byte
  /// boundary, in elements.
  static Buffer output(std::size_t size, std::size_t offset = 0) { return Buffer(size, offset, false); }
  ~Buffer() {
    remove_buffer(begin_);
    EXPECT_TRUE(intact(pages_.data(), begin_) && intact(begin_ + bytes(), pages_.data() + pages_.size()))
        << "a kernel wrote beside a buffer of " << size_ << " elements";
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return reinterpret_cast<T*>(begin_); }
  std::size_t size() const { return size_; }
  std::vector<T> values() const {
    std::vector<T> result(size_);
    if (size_ > 0) std::memcpy(result.data(), begin_, bytes());
    return result;
  }

 private:
  Buffer(std::size_t size, std::size_t offset, bool initialised)
      : size_(size), pages_(bytes() + offset * sizeof(T) + 16) {
    unsigned char* const end = pages_.data() + pages_.size();
    begin_ = end - (bytes() + offset * sizeof(T) + 15) / 16 * 16 + offset * sizeof(T);
    std::memset(pages_.data(), 0xFF, pages_.size());
    add_buffer(begin_, bytes(), initialised);
  }
  static bool intact(const unsigned char* begin, const unsigned char* end) {
    for (; begin != end; ++begin)
      if (*begin != 0xFF) return false;
    return true;
  }
  std::size_t bytes() const { return size_ * sizeof(T); }

  std::size_t size_;
  GuardedPages pages_;
  unsigned char* begin_ = nullptr;
};

/// Runs `test` under every schedule, with early copies and, where it makes any, with late ones.
template <class F>
void in_all_schedules(F test) {
  const std::uint64_t before = copies_begun();
  for (const Copies copies : {Copies::at_once, Copies::deferred}) {
    if (copies == Copies::deferred && copies_begun() == before) break;
    for (const auto& [schedule, name] : {std::pair(Schedule::fifo, "fifo"), std::pair(Schedule::lifo, "lifo"),
                                         std::pair(Schedule::random, "random")}) {
      SCOPED_TRACE(
          fmt::format("{} schedule, {} copies", name, copies == Copies::deferred ? "late" : "early"));
      configure({schedule, copies, 1234});
      test();
    }
  }
  configure({});
}

}  // namespace gyre::simt
