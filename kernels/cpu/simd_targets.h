#pragma once

#include "kernels/cpu/simd.h"

// Instruction sets that Highway compiles: AVX2, AVX-512 (AVX3), NEON and always the portable fallback.
// Include before any hwy header. The sets left out cost build time without gain, and the sizeless SVE vectors
// forbid arrays of vectors.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS                                                                        \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128 | HWY_RVV | \
   HWY_PPC8 | HWY_WASM)
#define HWY_COMPILE_ALL_ATTAINABLE
#endif

/// The instance of an exported function for the instruction set in use.
#define GYRE_CHOSEN(NAME) (::gyre::kernels::cpu::simd(), HWY_DYNAMIC_DISPATCH(NAME))
