#include "kernels/matmul.h"

#include "kernels/cpu/matmul.h"
#include "kernels/cuda/matmul.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<const cpu::GemmShape&, const Tensor&, const Tensor&, Tensor&> matmul_op{
    "matmul", cpu::matmul, GYRE_CUDA_OP(cuda::matmul)};

/// A tensor whose leading dimensions advance by one stride; copied where they do not.
struct MatrixBatch {
  Tensor tensor;
  std::int64_t stride = 0;
};

MatrixBatch batch_of(const Tensor& x) {
  const Shape &shape = x.shape(), &strides = x.strides();
  std::int64_t stride = 0, expected = 0;
  bool found = false;
  for (int dim = x.rank() - 3; dim >= 0; --dim) {
    if (shape[dim] == 1) continue;
    if (!found) {
      found = true;
      stride = strides[dim];
    } else if (strides[dim] != expected) {
      return {x.contiguous(), shape[-1] * shape[-2]};
    }
    expected = strides[dim] * shape[dim];
  }
  return {x, stride};
}

void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  const MatrixBatch left = batch_of(a), right = batch_of(b);
  cpu::GemmShape s;
  s.m = a.size(-2);
  s.k = a.size(-1);
  s.n = b.size(-1);
  s.batch = y.numel() / (s.m * s.n);
  s.a_batch = left.stride;
  s.a_row = left.tensor.strides()[-2];
  s.a_col = left.tensor.strides()[-1];
  s.b_batch = right.stride;
  s.b_row = right.tensor.strides()[-2];
  s.b_col = right.tensor.strides()[-1];
  s.c_batch = s.m * s.n;
  s.c_row = s.n;
  matmul_op(y.device(), s, left.tensor, right.tensor, y);
}

/// Throws with both shapes in `text`.
[[noreturn]] void fail(fmt::format_string<const Shape&, const Shape&> text, const Tensor& a,
                       const Tensor& b) {
  throw ShapeError(fmt::format(text, a.shape(), b.shape()));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  require_same_device(a, b, "matmul");
  require_same_dtype(a, b, "matmul");
  require_computable(a, "matmul");
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
  if (y.numel() > 0) multiply(left, right, y);
  return y;
}

}  // namespace gyre::kernels
