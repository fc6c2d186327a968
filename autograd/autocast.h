#pragma once

#include <optional>

#include "autograd/variable.h"

namespace gyre {

/// While alive, products on this thread (linear, eq_linear, matmul, attention) take their factors in `dtype`,
/// f16 or bf16, and return it; without a type they take them as they come. Parameters stay as they are:
/// products read copies that their layer keeps, and their gradients are summed and returned in f32. Scopes
/// nest; the innermost counts. Throws DTypeError for other types.
class AutocastScope {
 public:
  explicit AutocastScope(std::optional<DType> dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  std::optional<DType> outer_;
};

/// Type of the innermost scope of this thread.
std::optional<DType> autocast_type();

/// x in another type; the gradient returns in that of x. x itself if nothing changes.
Variable cast(const Variable& x, DType dtype);
/// A factor of a product: in the type of the scope, if there is one.
Variable autocast(const Variable& x);
/// f16 and bf16 in f32, other types as they are: for sums over layers, norms and the loss.
Variable widen(const Variable& x);

}  // namespace gyre
