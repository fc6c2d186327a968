#include "kernels/cpu/matmul.h"

#include <type_traits>

#include "kernels/cpu/gemm_f64.h"
#include "kernels/cpu/gemm_f32.h"

namespace gyre::kernels::cpu {
namespace {

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

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& y) {
  const MatrixBatch left = batch_of(a), right = batch_of(b);
  GemmShape s;
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
  if (y.dtype() == DType::f32) {
    gemm_f32(s, left.tensor.data<float>(), right.tensor.data<float>(), y.mutable_data<float>());
  } else {
    gemm_f64(s, left.tensor.data<double>(), right.tensor.data<double>(), y.mutable_data<double>());
  }
}

}  // namespace gyre::kernels::cpu
