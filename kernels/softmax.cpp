#include "kernels/softmax.h"

#include "kernels/cpu/softmax.h"
#include "kernels/cuda/softmax.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, Tensor&> forward_op{"softmax_forward", cpu::softmax_forward,
                                                GYRE_CUDA_OP(cuda::softmax_forward)};
constexpr Op<const Tensor&, const Tensor&, Tensor&> backward_op{"softmax_backward", cpu::softmax_backward,
                                                                GYRE_CUDA_OP(cuda::softmax_backward)};

void check(const Tensor& x) {
  require_computable(x, "softmax");
  require<ShapeError>(x.rank() >= 1, "softmax takes tensors of rank 1 or more");
}

}  // namespace

Tensor softmax_forward(const Tensor& x) {
  check(x);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (y.numel() > 0) forward_op(x.device(), x.contiguous(), y);
  return y;
}

Tensor softmax_backward(const Tensor& y, const Tensor& grad) {
  check(y);
  require_same_device(y, grad, "softmax_backward");
  require_same_dtype(y, grad, "softmax_backward");
  require_shape(grad, y.shape(), "softmax_backward");
  Tensor result = Tensor::empty(y.shape(), y.dtype(), y.device());
  if (result.numel() > 0) backward_op(y.device(), y.contiguous(), grad.contiguous(), result);
  return result;
}

}  // namespace gyre::kernels
