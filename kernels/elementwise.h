#pragma once

#include "core/tensor.h"
#include "kernels/elementwise_ops.h"

namespace gyre::kernels {

// All take f32 or f64, on CUDA also f16 or bf16, with any strides and return dense tensors. Errors:
// DTypeError, DeviceError, ShapeError.

/// Element-wise a ∘ b with right-aligned broadcasting.
Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b);
/// Element-wise f(x).
Tensor unary(UnaryOp op, const Tensor& x);
/// grad · f'(x), shapes all equal; y = f(x).
/// exp, tanh and sqrt read y, the others x; the unread one may be undefined.
Tensor unary_backward(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& grad);
/// scale · x + shift.
Tensor affine(const Tensor& x, double scale, double shift);
/// accumulator += scale · x, of equal shape and any strides; the accumulator must not overlap itself.
void add_into(Tensor& accumulator, const Tensor& x, double scale = 1);

}  // namespace gyre::kernels
