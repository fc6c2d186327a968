#pragma once

#include "core/tensor.h"
#include "kernels/elementwise.h"

namespace gyre::kernels::cuda {

// Dense tensors of one shape unless said otherwise; outputs are dense and do not overlap inputs.

/// a and b are expanded to y's shape; the stride of their innermost dimension longer than 1 is 0 or 1.
void binary(BinaryOp op, const Tensor& a, const Tensor& b, Tensor& y);
void unary(UnaryOp op, const Tensor& x, Tensor& y);
/// `saved` is y for exp, tanh and sqrt, else x.
void unary_backward(UnaryOp op, const Tensor& saved, const Tensor& grad, Tensor& result);
void affine(const Tensor& x, double scale, double shift, Tensor& y);
void add_into(Tensor& accumulator, const Tensor& x, double scale);

}  // namespace gyre::kernels::cuda
