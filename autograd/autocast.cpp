#include "autograd/autocast.h"

#include <utility>

#include "kernels/types.h"

namespace gyre {
namespace {

thread_local std::optional<DType> scope_type;

}  // namespace

AutocastScope::AutocastScope(std::optional<DType> dtype) : outer_(std::exchange(scope_type, dtype)) {
  if (!dtype || *dtype == DType::f16 || *dtype == DType::bf16) return;
  scope_type = outer_;
  throw DTypeError(fmt::format("products are computed in f16 or bf16, not {}", *dtype));
}

AutocastScope::~AutocastScope() { scope_type = outer_; }

std::optional<DType> autocast_type() { return scope_type; }

Variable cast(const Variable& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = x.data().to(dtype);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("cast", std::move(y), {x},
                     [own = x.dtype()](const Tensor& grad) -> Gradients { return {grad.to(own)}; });
}

Variable autocast(const Variable& x) { return scope_type ? cast(x, *scope_type) : x; }

Variable widen(const Variable& x) { return cast(x, kernels::wide_type(x.dtype())); }

}  // namespace gyre
