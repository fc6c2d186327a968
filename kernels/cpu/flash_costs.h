#pragma once

#include <cstdint>

namespace gyre::kernels::cpu {

/// What the time of a layer depends on.
struct FlashShape {
  int order = 0;     ///< T
  int products = 0;  ///< P of the form
  std::int64_t rows = 0;
  std::int64_t channels_in = 0, channels_out = 0;  ///< C, D ≥ 1
  int threads = 1;
};

/// How the sums for dW are kept apart: by rows, and by output channels.
struct FlashGrid {
  int row_parts = 1, column_parts = 1;
  std::int64_t columns = 0;  ///< output channels of a part, the last may have fewer

  explicit FlashGrid(const FlashShape& shape);
  int parts() const { return row_parts * column_parts; }
};

// Times in dense multiply-adds of one thread, fitted to medians over a grid of shapes on one and two threads
// of a Zen 5.

/// dW of the naive layer, by itself or by the library (eq_linear.h).
double naive_sums_cost(const FlashShape& shape);
/// dW as dense products, folded in the registers (eq_weight_gradient.h).
double dense_sums_cost(const FlashShape& shape);
/// dW as products of all planes, whose sums are cleared, added and mapped back.
double flash_sums_cost(const FlashShape& shape);
/// dW by whichever of both costs less.
inline bool dense_sums_win(const FlashShape& shape) {
  return dense_sums_cost(shape) < flash_sums_cost(shape);
}

}  // namespace gyre::kernels::cpu
