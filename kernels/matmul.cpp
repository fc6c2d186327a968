#include "kernels/matmul.h"

#include "kernels/cpu/matmul.h"
#include "kernels/op.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const Tensor&, Tensor&> matmul_op{"matmul", cpu::matmul};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  require_same_device(a, b, "matmul");
  require_same_dtype(a, b, "matmul");
  require<DTypeError>(a.dtype() == DType::f32 || a.dtype() == DType::f64, "matmul takes f32 or f64, not {}",
                      a.dtype());
  const auto name = [](const Tensor& x, bool transposed) {
    return x.shape().str() + (transposed ? " transposed" : "");
  };
  require<ShapeError>(a.rank() >= 2 && b.rank() >= 2, "matmul takes tensors of rank 2 or more, not {} and {}",
                      a.shape().str(), b.shape().str());
  const Tensor left = transpose_a ? a.transpose(-2, -1) : a;
  const Tensor right = transpose_b ? b.transpose(-2, -1) : b;
  require<ShapeError>(left.size(-1) == right.size(-2), "matmul: inner sizes {} and {} of {} and {} differ",
                      left.size(-1), right.size(-2), name(a, transpose_a), name(b, transpose_b));
  Shape shape;
  bool same_batch = b.rank() == 2 || a.rank() == b.rank();
  for (int dim = 0; dim < a.rank() - 2; ++dim) {
    same_batch = same_batch && (b.rank() == 2 || a.size(dim) == b.size(dim));
    shape.push_back(a.size(dim));
  }
  require<ShapeError>(same_batch, "matmul: leading dimensions of {} and {} differ", a.shape().str(),
                      b.shape().str());
  shape.push_back(left.size(-2));
  shape.push_back(right.size(-1));
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  if (y.numel() > 0) matmul_op(a.device(), left, right, y);
  return y;
}

}  // namespace gyre::kernels
