#pragma once

#include <cstddef>

namespace gyre::kernels::cpu {

/// Matrix primitives in this thread's cache, and its bound.
std::size_t cached_gemm_primitives();
std::size_t max_cached_gemm_primitives();

}  // namespace gyre::kernels::cpu
