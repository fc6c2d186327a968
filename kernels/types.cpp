#include "kernels/types.h"

namespace gyre::kernels {

void require_computable(const Tensor& x, std::string_view what) {
  const DType dtype = x.dtype();
  if (dtype == DType::f32 || dtype == DType::f64) return;
  const bool cuda = x.device().is_cuda();
  if (cuda && is_floating(dtype)) return;
  throw DTypeError(fmt::format("{} takes {}f32 or f64, not {}", what, cuda ? "f16, bf16, " : "", dtype));
}

void require_dtype(const Tensor& x, DType dtype, std::string_view what) {
  require<DTypeError>(x.dtype() == dtype, "{}: data types {} and {} differ", what, dtype, x.dtype());
}

DType wide_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace gyre::kernels
