#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace gyre {

/// A table over a square of cells on a finer or coarser square: [side, side, C] → [new_side, new_side, C], of
/// the same type. Cubic convolution in both directions (Keys, IEEE Trans. ASSP 29, 1981, a = -1/2) between
/// the centres of the cells, where the square shrinks with a kernel wide enough to take in every cell; the
/// border repeats. Commutes with turns and mirrors up to rounding. Throws ShapeError unless the table is
/// square.
Tensor resample_square(const Tensor& table, std::int64_t new_side);

}  // namespace gyre
