#pragma once

#include <cstdint>

#include "kernels/broadcast_loop.h"
#include "kernels/elementwise_ops.h"

namespace gyre::kernels::cuda {

// Dense device arrays of n elements, n > 0; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types
// with f32 arithmetic.

template <class T>
void launch_unary(UnaryOp op, const T* x, T* y, std::int64_t n, void* stream);
/// `saved` is y for exp, tanh and sqrt, else x.
template <class T>
void launch_unary_backward(UnaryOp op, const T* saved, const T* grad, T* result, std::int64_t n,
                           void* stream);
template <class T>
void launch_affine(const T* x, double scale, double shift, T* y, std::int64_t n, void* stream);
/// sum += scale · x.
template <class T>
void launch_add_into(T* sum, const T* x, double scale, std::int64_t n, void* stream);
/// y dense; the innermost strides of a and b are 0 or 1 unless the extent is 1.
template <class T>
void launch_binary(BinaryOp op, const BroadcastLoop& loop, const T* a, const T* b, T* y, void* stream);

}  // namespace gyre::kernels::cuda
