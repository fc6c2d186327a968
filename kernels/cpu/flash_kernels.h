#pragma once

#include <cstdint>

namespace gyre::kernels::cpu {

// The vector code behind Flash EQ-Linear, f32, compiled per instruction set (flash_kernels.cpp).

/// y = output · ((input · x) ∘ w) + b for all rows of x: forward with the planes of W, or dX with those of
/// its transpose.
struct FlashProduct {
  int order = 0;                   ///< T
  int products = 0;                ///< P
  const float* input = nullptr;    ///< [P, T]
  const float* output = nullptr;   ///< [T, P]
  std::int64_t channels_in = 0;    ///< C
  std::int64_t channels_out = 0;   ///< D
  const float* weights = nullptr;  ///< pack_flash_weights
  const float* bias = nullptr;     ///< [D] or null
  const float* x = nullptr;        ///< [N, C, T]
  float* y = nullptr;              ///< [N, D, T]
};

/// Output channels that one packed panel holds on the running machine.
std::int64_t flash_panel();
/// Name of the instruction set that runs: "avx512", "avx2", "neon", "portable".
const char* flash_target();

/// Floats that pack_flash_weights writes.
std::int64_t packed_flash_size(int products, std::int64_t channels_in, std::int64_t channels_out);
/// Planes w(p, c, d) = planes[p·plane + c·c_stride + d·d_stride] as panels [⌈D/panel⌉][P][C][panel], zeros
/// beyond D.
void pack_flash_weights(int products, std::int64_t channels_in, std::int64_t channels_out,
                        const float* planes, std::int64_t plane, std::int64_t c_stride, std::int64_t d_stride,
                        float* packed);

/// Rows [first, last) of a product, on the calling thread.
void flash_multiply(const FlashProduct& product, std::int64_t first, std::int64_t last);

/// Sums over rows for the gradients of W and b.
struct FlashReduction {
  int order = 0;
  int products = 0;
  const float* input = nullptr;   ///< [P, T], of x
  const float* output = nullptr;  ///< [P, T], transposed output matrix, of dy
  std::int64_t channels_in = 0;   ///< C
  std::int64_t channels_out = 0;  ///< D
  const float* x = nullptr;       ///< [N, C, T]
  const float* dy = nullptr;      ///< [N, D, T]
};

/// sums[p][d][c] += Σ_n g_p[n,d] · f_p[n,c] over rows [first, last); `bias` [D] += Σ_n Σ_t dy or null.
void flash_reduce(const FlashReduction& reduction, std::int64_t first, std::int64_t last, float* sums,
                  float* bias);

}  // namespace gyre::kernels::cpu
