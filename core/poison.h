#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace gyre {

/// Puts kept memory off limits for AddressSanitizer, so that keeping it hides no error.
inline void hide([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}
inline void unhide([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

}  // namespace gyre
