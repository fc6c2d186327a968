#include "kernels/bias_gelu.h"

#include <array>

#include "kernels/cuda/bias_gelu.h"
#include "kernels/elementwise.h"
#include "kernels/op.h"
#include "kernels/reduce.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

/// The sums over rows stay apart: they are the work of threads, and the elements those of vectors.
void backward_cpu(const Tensor& before, const Tensor& grad, int repeat, BiasGeluGrads& result) {
  result.x = unary_backward(UnaryOp::gelu, before, Tensor(), grad);
  result.bias = sum(result.x, std::array{0}, false);
  if (repeat > 1) result.bias = sum(result.bias.reshape({-1, repeat}), std::array{1}, false);
}

constexpr Op<const Tensor&, const Tensor&, int, BiasGeluGrads&> backward_op{
    "bias_gelu_backward", backward_cpu, GYRE_CUDA_OP(cuda::bias_gelu_backward)};

}  // namespace

BiasGeluGrads bias_gelu_backward(const Tensor& before, const Tensor& grad, int repeat) {
  require_computable(before, "bias_gelu_backward");
  require<ShapeError>(repeat >= 1 && before.rank() == 2 && before.size(1) % repeat == 0,
                      "bias_gelu_backward: {} is not [N, C * {}]", before.shape(), repeat);
  require_same_device(before, grad, "bias_gelu_backward");
  require_same_dtype(before, grad, "bias_gelu_backward");
  require_shape(grad, before.shape(), "bias_gelu_backward");
  BiasGeluGrads result;
  backward_op(before.device(), before.contiguous(), grad.contiguous(), repeat, result);
  return result;
}

}  // namespace gyre::kernels
