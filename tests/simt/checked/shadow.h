#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
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
  Region(const Range& bytes, std::uint32_t initialised);

  const Range& bytes() const { return bytes_; }
  std::span<Cell> cells(const void* address, std::size_t size);

 private:
  void refine(std::size_t granule);

  Range bytes_;
  std::size_t granule_ = 8;
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
  void touch(Region& region, bool shared, const void* address, std::size_t size, Access kind,
             const void* caller);
  std::string describe(const void* address, std::size_t size, Access kind, const void* caller) const;

  std::map<const unsigned char*, Region> buffers_;  // by their first byte
  Region* latest_ = nullptr;
  std::optional<Region> shared_;
  std::uint32_t first_block_ = 1;
  Range arguments_;  // of the kernel
};

/// "layer_norm.cu:57" of the instruction before a return address, by addr2line; the address where that is
/// missing.
std::string line_of(const void* caller);

}  // namespace gyre::simt
