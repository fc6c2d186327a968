#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simt/emulator/emulator.h"

namespace gyre::simt {

enum class Access { read, write, atomic };

/// Who touched a cell last, as one of: a thread, several lanes of a warp since its last sync_warp, several
/// warps since the last sync, several blocks of the launch.
struct Stamp {
  enum class By : std::uint16_t { thread, lanes, warps, blocks };

  std::uint32_t block = 0;  // 0: nobody
  std::uint32_t barriers = 0, warp_barriers = 0;
  std::uint16_t thread = 0;
  By by = By::thread;
  const void* caller = nullptr;
};

/// What is known of a few bytes.
struct Cell {
  Stamp write, read, atomic;
  std::uint32_t initialised = 0;  // by this block (shared memory), or not 0 (global memory)
  std::uint32_t in_flight = 0;    // block whose cp.async copy has begun and is not waited for
};

/// Cells for the bytes from `begin` on, each as large as the accesses so far allow.
class Region {
 public:
  Region(const unsigned char* begin, std::size_t size, std::uint32_t initialised);

  const unsigned char* begin() const { return begin_; }
  std::size_t size() const { return size_; }
  bool holds(const void* address, std::size_t size) const;
  struct Range {
    Cell* first;
    Cell* last;
    Cell* begin() const { return first; }
    Cell* end() const { return last; }
  };
  Range cells(const void* address, std::size_t size);

 private:
  void refine(std::size_t granule);

  const unsigned char* begin_;
  std::size_t size_, granule_ = 8;
  std::vector<Cell> cells_;
};

/// Watches every access of kernels: bounds, races and initialisation.
class Shadow : public Checker {
 public:
  void begin_launch(std::uint32_t first_block, const Call& call) override;
  void add_buffer(const void* begin, std::size_t size, bool initialised) override;
  void remove_buffer(const void* begin) override;
  void atomic(const void* address, std::size_t size, const void* caller) override;
  void begin_copy(const void* to, const void* from, std::size_t size, bool valid,
                  const void* caller) override;
  void end_copy(const void* to, const void* from, std::size_t size, bool valid, const void* caller) override;

  /// An access of the running kernel from the instruction before `caller`.
  void access(const void* address, std::size_t size, Access kind, const void* caller);

 private:
  Region* global(const void* address, std::size_t size);
  void touch(Cell& cell, bool shared, const void* address, std::size_t size, Access kind, const void* caller);
  std::string describe(const void* address, std::size_t size, Access kind, const void* caller) const;
  bool permitted(const void* address, std::size_t size, Access kind) const;

  std::map<const unsigned char*, Region> buffers_;  // by their first byte
  Region* latest_ = nullptr;
  std::unique_ptr<Region> shared_;
  std::uint32_t first_block_ = 1;
  Call call_{};
};

/// "layer_norm.cu:57" of the instruction before a return address, by addr2line; the address where that is
/// missing.
std::string line_of(const void* caller);

}  // namespace gyre::simt
