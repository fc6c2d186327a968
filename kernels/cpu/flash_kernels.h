#pragma once

#include <cstdint>

#include "kernels/cpu/scratch.h"

namespace gyre::kernels::cpu {

// The vector code behind Flash EQ-Linear, f32, compiled per instruction set. A form of P products is given by
// matrices [P, T] in row-major order: `split` maps the T elements of a channel to its planes, `merge` is
// applied transposed and maps planes back (docs/math.md section 3).

/// Name of the instruction set that runs, as the compiler saw it: "avx512", "avx2", "neon", "portable".
const char* flash_target();
/// Floats of a vector of the instruction set in use.
int flash_lanes();

/// y = mergeᵀ · ((split · x) ∘ w) + b for all rows of x, C and D ≥ 1: forward with the planes of W, or dX
/// with those of its transpose.
struct FlashProduct {
  int order = 0;                   ///< T
  int products = 0;                ///< P
  const float* split = nullptr;    ///< [P, T]
  const float* merge = nullptr;    ///< [P, T]
  std::int64_t channels_in = 0;    ///< C
  std::int64_t channels_out = 0;   ///< D
  const float* weights = nullptr;  ///< pack_flash_weights
  const float* bias = nullptr;     ///< [D] or null
  const float* x = nullptr;        ///< [N, C, T]
  float* y = nullptr;              ///< [N, D, T]
  bool gelu = false;               ///< y = GELU of the sum
  float* sum = nullptr;            ///< with gelu: the sum as it was before [N, D, T], or null
  std::int64_t y_stride = 0;       ///< floats between rows of y and sum: D·T, or more for a part of D

  /// Output channels [first, first + count) alone; `first` is a multiple of whole_panels(1).
  FlashProduct part(std::int64_t first, std::int64_t count) const;
};

/// Output channels rounded up to whole panels of any instruction set.
constexpr std::int64_t whole_panels(std::int64_t channels_out) { return round_up(channels_out, 32); }

/// Rows [first, last) of a product, on the calling thread.
void flash_multiply(const FlashProduct& product, std::int64_t first, std::int64_t last);

/// Sums over rows for the gradients of W and b.
struct FlashReduction {
  int order = 0;
  int products = 0;
  const float* split_x = nullptr;   ///< [P, T]
  const float* split_dy = nullptr;  ///< [P, T]
  int sum_plane = 0;                ///< row of split_dy that adds all elements: the gradient of b
  std::int64_t channels_in = 0;     ///< C
  std::int64_t channels_out = 0;    ///< D
  const float* x = nullptr;         ///< [N, C, T]
  const float* dy = nullptr;        ///< [N, D, T]
  std::int64_t dy_stride = 0;       ///< floats between rows of dy: D·T, or more for a part of its channels
};

/// Adds Σ_n dy_p[n,d] · x_p[n,c] over rows [first, last) to `sums`, flash_sums_size floats, on the calling
/// thread. With `dx` also those rows of dX, whose split is split_dy; dy is read once for both.
void flash_reduce(const FlashReduction& reduction, const FlashProduct* dx, std::int64_t first,
                  std::int64_t last, float* sums);

/// A weight and the matrix of its planes.
struct FlashWeights {
  int order = 0;
  int products = 0;
  const float* weight = nullptr;  ///< [P, T]
  std::int64_t channels_in = 0;   ///< C
  std::int64_t channels_out = 0;  ///< D
};

/// Floats that pack_flash_weights writes for C in and D out.
std::int64_t packed_flash_size(int products, std::int64_t channels_in, std::int64_t channels_out);
/// Planes of w [D, C, T] in panels of output channels: D for forward, C for dX (`transposed`).
void pack_flash_weights(const FlashWeights& form, const float* w, bool transposed, float* packed);

/// Floats of the sums of flash_reduce for W and b.
std::int64_t flash_sums_size(int products, std::int64_t channels_in, std::int64_t channels_out);
/// dW [D, C, T] and db [D] (each may be null) from `parts` sums at distance `part`, added in order.
void unpack_flash_sums(const FlashWeights& form, const float* sums, std::int64_t parts, std::int64_t part,
                       float* dw, float* db);

}  // namespace gyre::kernels::cpu
