#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "autograd/variable.h"

namespace gyre {

// Views share the data of `x`. Dimensions may be negative; errors are those of the Tensor member of the same
// name.

/// One extent may be -1. A view where strides allow, else a copy.
Variable reshape(const Variable& x, const Shape& shape);
Variable permute(const Variable& x, std::span<const int> dims);
inline Variable permute(const Variable& x, std::initializer_list<int> dims) {
  return permute(x, std::span<const int>(dims.begin(), dims.size()));
}
Variable transpose(const Variable& x, int a, int b);
/// Elements start, start+step, … below `end` of `dim`; step ≥ 1.
Variable slice(const Variable& x, int dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
/// Index `i` of `dim`, which disappears.
Variable select(const Variable& x, int dim, std::int64_t i);
/// Extents of 1 repeat; new leading dimensions are allowed.
Variable expand(const Variable& x, const Shape& shape);
Variable unsqueeze(const Variable& x, int dim);

/// Joins along `dim`; all other extents agree.
Variable concat(std::span<const Variable> parts, int dim);
inline Variable concat(std::initializer_list<Variable> parts, int dim) {
  return concat(std::span<const Variable>(parts.begin(), parts.size()), dim);
}
/// x [B, M], index i64 [K] with values in [0, M) → y [B, K], y[b, k] = x[b, index[k]].
Variable gather(const Variable& x, const Tensor& index);
/// Reorders rows: x [B, L, C], `order` a permutation of 0 … L-1 and `inverse` its inverse, both i64 [L] →
/// y[b, i] = x[b, order[i]].
Variable permute_rows(const Variable& x, const Tensor& order, const Tensor& inverse);

}  // namespace gyre
