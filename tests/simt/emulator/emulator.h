#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/cuda/simt.h"
#include "tests/simt/emulator/fault.h"

namespace gyre::simt {

/// The order in which ready threads and blocks run.
enum class Schedule { fifo, lifo, random };
/// When a cp.async copy happens: at once, or when it is waited for, with a poisoned destination until then.
enum class Copies { at_once, deferred };

struct Options {
  Schedule schedule = Schedule::fifo;
  Copies copies = Copies::at_once;
  std::uint64_t seed = 0;
};
/// Holds for all launches that follow.
void configure(const Options& options);
/// How many cp.async copies kernels have begun so far.
std::uint64_t copies_begun();
/// How many kernels were launched so far.
std::uint64_t launches();

/// Where the running thread stands; two moments of one block are ordered if a number of barriers differs that
/// both threads took part in.
struct Moment {
  std::uint32_t block = 0;  // counts all blocks of all launches, from 1
  std::uint32_t barriers = 0;
  std::uint32_t warp_barriers = 0;
  std::uint32_t thread = 0;
};

/// What the checked build learns from the emulator beside the accesses that the compiler announces.
class Checker {
 public:
  virtual ~Checker() = default;
  /// Blocks from `first_block` on belong to this launch; the kernel may read the arguments.
  virtual void begin_launch(std::uint32_t first_block, const Call& call) = 0;
  virtual void add_buffer(const void* begin, std::size_t size, bool initialised) = 0;
  virtual void remove_buffer(const void* begin) = 0;
  virtual void atomic(const void* address, std::size_t size, const void* caller) = 0;
  virtual void begin_copy(const void* to, const void* from, std::size_t size, bool valid,
                          const void* caller) = 0;
  virtual void end_copy(const void* to, const void* from, std::size_t size, bool valid,
                        const void* caller) = 0;
};
void install(Checker* checker);

/// Memory that kernels may use; `initialised`: that they may read at once.
void add_buffer(const void* begin, std::size_t size, bool initialised);
void remove_buffer(const void* begin);

/// A range of memory.
struct Range {
  const unsigned char* begin = nullptr;
  const unsigned char* end = nullptr;

  bool holds(const void* address, std::size_t size) const {
    const auto* const first = static_cast<const unsigned char*>(address);
    return first >= begin && first < end && size <= static_cast<std::size_t>(end - first);
  }
};
/// The running thread; `moment.block` is 0 outside kernels. Only the emulator writes it.
struct Running {
  Moment moment;
  Range stack;
  Range arena;   // all memory that can be shared memory
  Range shared;  // the block's part of it, at its end
};
extern Running running;

/// Ends the launch with a Fault; called by a running kernel.
[[noreturn]] void fail(Rule rule, const std::string& what);

}  // namespace gyre::simt
