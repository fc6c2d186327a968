#include "kernels/elementwise.h"

#include <string_view>

#include "kernels/cpu/elementwise.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<BinaryOp, const Tensor&, const Tensor&, Tensor&> binary_op{"binary", cpu::binary,
                                                                        GYRE_CUDA_OP(cuda::binary)};
constexpr Op<UnaryOp, const Tensor&, Tensor&> unary_op{"unary", cpu::unary, GYRE_CUDA_OP(cuda::unary)};
constexpr Op<UnaryOp, const Tensor&, const Tensor&, Tensor&> unary_backward_op{
    "unary_backward", cpu::unary_backward, GYRE_CUDA_OP(cuda::unary_backward)};
constexpr Op<const Tensor&, double, double, Tensor&> affine_op{"affine", cpu::affine,
                                                               GYRE_CUDA_OP(cuda::affine)};
constexpr Op<Tensor&, const Tensor&, double> add_into_op{"add_into", cpu::add_into,
                                                         GYRE_CUDA_OP(cuda::add_into)};

std::string_view name_of(BinaryOp op) {
  constexpr std::string_view names[] = {"add", "sub", "mul", "div"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view name_of(UnaryOp op) {
  constexpr std::string_view names[] = {"neg", "exp", "log", "sqrt", "tanh", "relu", "gelu"};
  return names[static_cast<std::size_t>(op)];
}

bool reads_result(UnaryOp op) { return op == UnaryOp::exp || op == UnaryOp::tanh || op == UnaryOp::sqrt; }

/// `x` expanded to `shape` with an innermost stride of 0 or 1; copies x where it must.
Tensor expand_for_rows(const Tensor& x, const Shape& shape) {
  Tensor view = x.expand(shape);
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    if (shape[dim] == 1) continue;
    const std::int64_t stride = view.strides()[dim];
    return stride == 0 || stride == 1 ? view : x.contiguous().expand(shape);
  }
  return view;
}

}  // namespace

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  require_same_device(a, b, name_of(op));
  require_same_dtype(a, b, name_of(op));
  require_computable(a, name_of(op));
  const Shape shape = a.shape() == b.shape() ? a.shape() : broadcast_shapes(a.shape(), b.shape());
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  if (y.numel() > 0) binary_op(a.device(), op, expand_for_rows(a, shape), expand_for_rows(b, shape), y);
  return y;
}

Tensor unary(UnaryOp op, const Tensor& x) {
  require_computable(x, name_of(op));
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (y.numel() > 0) unary_op(x.device(), op, x.contiguous(), y);
  return y;
}

Tensor unary_backward(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& grad) {
  const Tensor& saved = reads_result(op) ? y : x;
  require<ValueError>(saved.defined(), "backward of {} needs its {}", name_of(op),
                      reads_result(op) ? "result" : "input");
  require_same_device(saved, grad, name_of(op));
  require_same_dtype(saved, grad, name_of(op));
  require_shape(grad, saved.shape(), name_of(op));
  require_computable(grad, name_of(op));
  Tensor result = Tensor::empty(grad.shape(), grad.dtype(), grad.device());
  if (result.numel() > 0) unary_backward_op(grad.device(), op, saved.contiguous(), grad.contiguous(), result);
  return result;
}

Tensor affine(const Tensor& x, double scale, double shift) {
  require_computable(x, "affine");
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (y.numel() > 0) affine_op(x.device(), x.contiguous(), scale, shift, y);
  return y;
}

void add_into(Tensor& accumulator, const Tensor& x, double scale) {
  require_same_device(accumulator, x, "add_into");
  require_same_dtype(accumulator, x, "add_into");
  require_shape(x, accumulator.shape(), "add_into");
  require_computable(x, "add_into");
  if (x.numel() == 0) return;
  if (accumulator.is_contiguous()) {
    add_into_op(x.device(), accumulator, x.contiguous(), scale);
  } else {
    Tensor dense = accumulator.clone();
    add_into_op(x.device(), dense, x.contiguous(), scale);
    accumulator.copy_(dense);
  }
}

}  // namespace gyre::kernels
