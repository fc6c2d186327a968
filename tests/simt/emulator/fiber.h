#pragma once

#include <cstddef>
#include <memory>

namespace gyre::simt {

/// Pages without access on both sides of `size` bytes, rounded up to whole pages; aligned to a page.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t size);
  ~GuardedPages();
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  unsigned char* data_;
  std::size_t size_;
};

/// A stack of its own on which `entry` runs whenever it is resumed; `entry` never returns. Destroying a
/// suspended fiber forgets what runs on it without unwinding, as a device does with a failed kernel.
class Fiber {
 public:
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Goes on in the fiber until it suspends.
  void resume();
  /// Called on the fiber: goes back to where it was resumed.
  void suspend();
  const GuardedPages& stack() const;

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace gyre::simt
