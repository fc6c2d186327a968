#include "kernels/matmul.h"

#include "kernels/cpu/matmul.h"
#include "kernels/op.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const Tensor&, Tensor&> matmul_op{"matmul", cpu::matmul};

/// Throws with both shapes in `text`.
[[noreturn]] void fail(fmt::format_string<const Shape&, const Shape&> text, const Tensor& a,
                       const Tensor& b) {
  throw ShapeError(fmt::format(text, a.shape(), b.shape()));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  require_same_device(a, b, "matmul");
  require_same_dtype(a, b, "matmul");
  require<DTypeError>(a.dtype() == DType::f32 || a.dtype() == DType::f64, "matmul takes f32 or f64, not {}",
                      a.dtype());
  if (a.rank() < 2 || b.rank() < 2) fail("matmul takes tensors of rank 2 or more, not {} and {}", a, b);
  const Tensor left = transpose_a ? a.transpose(-2, -1) : a;
  const Tensor right = transpose_b ? b.transpose(-2, -1) : b;
  if (left.size(-1) != right.size(-2)) {
    throw ShapeError(fmt::format("matmul: inner sizes {} and {} of {}{} and {}{} differ", left.size(-1),
                                 right.size(-2), a.shape(), transpose_a ? " transposed" : "", b.shape(),
                                 transpose_b ? " transposed" : ""));
  }
  Shape shape;
  bool same_batch = b.rank() == 2 || a.rank() == b.rank();
  for (int dim = 0; dim < a.rank() - 2; ++dim) {
    same_batch = same_batch && (b.rank() == 2 || a.size(dim) == b.size(dim));
    shape.push_back(a.size(dim));
  }
  if (!same_batch) fail("matmul: leading dimensions of {} and {} differ", a, b);
  shape.push_back(left.size(-2));
  shape.push_back(right.size(-1));
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  if (y.numel() > 0) matmul_op(a.device(), left, right, y);
  return y;
}

}  // namespace gyre::kernels
