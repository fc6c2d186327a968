#pragma once

#include <initializer_list>
#include <span>

#include "autograd/variable.h"

namespace gyre {

/// Over all elements; the result has shape [].
Variable sum(const Variable& x);
Variable mean(const Variable& x);

/// Over `dims` (negative counts from the end), which stay with extent 1 if `keep_dim`.
Variable sum(const Variable& x, std::span<const int> dims, bool keep_dim = false);
Variable mean(const Variable& x, std::span<const int> dims, bool keep_dim = false);

inline Variable sum(const Variable& x, std::initializer_list<int> dims, bool keep_dim = false) {
  return sum(x, std::span<const int>(dims.begin(), dims.size()), keep_dim);
}
inline Variable mean(const Variable& x, std::initializer_list<int> dims, bool keep_dim = false) {
  return mean(x, std::span<const int>(dims.begin(), dims.size()), keep_dim);
}

}  // namespace gyre
