// What the compiler calls for each access under -fsanitize=thread, in place of the sanitizer's runtime.

#include <cstddef>

#include "tests/simt/checked/shadow.h"

namespace gyre::simt {
namespace {

Shadow& shadow() {
  static Shadow only;
  return only;
}

void seen(const void* address, std::size_t size, Access kind, const void* caller) {
  if (running.moment.block != 0) shadow().access(address, size, kind, caller);
}

}  // namespace
}  // namespace gyre::simt

using gyre::simt::Access;
using gyre::simt::seen;

// NOLINTBEGIN
#define GYRE_HOOKS(size)                                                                                  \
  void __tsan_read##size(void* p) { seen(p, size, Access::read, __builtin_return_address(0)); }           \
  void __tsan_write##size(void* p) { seen(p, size, Access::write, __builtin_return_address(0)); }         \
  void __tsan_unaligned_read##size(void* p) { seen(p, size, Access::read, __builtin_return_address(0)); } \
  void __tsan_unaligned_write##size(void* p) { seen(p, size, Access::write, __builtin_return_address(0)); }

extern "C" {
void __tsan_init() { gyre::simt::install(&gyre::simt::shadow()); }
GYRE_HOOKS(1)
GYRE_HOOKS(2)
GYRE_HOOKS(4)
GYRE_HOOKS(8)
GYRE_HOOKS(16)
void __tsan_read_range(void* p, std::size_t size) {
  seen(p, size, Access::read, __builtin_return_address(0));
}
void __tsan_write_range(void* p, std::size_t size) {
  seen(p, size, Access::write, __builtin_return_address(0));
}
}
// NOLINTEND
