#include "kernels/cpu/scratch.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

namespace gyre::kernels::cpu {
namespace {

constexpr std::size_t largest_kept = std::size_t{1} << 20;  // a common second-level cache
constexpr std::size_t alignment = 64;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

struct Kept {
  std::unique_ptr<void, Free> data;
  std::size_t bytes = 0;
  bool taken = false;
};

thread_local Kept kept;

}  // namespace

void* take_kept_scratch(std::size_t bytes) {
  if (kept.taken || bytes == 0 || bytes > largest_kept) return nullptr;
  if (bytes > kept.bytes) {
    const std::size_t wanted = std::bit_ceil(std::max(bytes, alignment));
    kept.bytes = 0;
    kept.data.reset(std::aligned_alloc(alignment, wanted));
    if (!kept.data) return nullptr;
    kept.bytes = wanted;
  }
  kept.taken = true;
  return kept.data.get();
}

void give_kept_scratch() noexcept { kept.taken = false; }

}  // namespace gyre::kernels::cpu
