#pragma once

#include <span>

#include "core/group.h"

namespace gyre {

/// Multiplications spent on one block of the Fourier form: complex 4 or 3, 2×2 matrix 8 or 7 (Strassen).
enum class BlockProducts { plain, fewest };

/// The bilinear form of y_t = Σ_s x_s W_{t⁻¹s} over the given Fourier blocks, in block order (docs/math.md
/// section 3).
BilinearForm make_bilinear_form(const Matrix& fourier, std::span<const double> scale,
                                std::span<const int> inverse, std::span<const FourierBlock> blocks,
                                BlockProducts products);

}  // namespace gyre
