#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cpu {

// One type for all: dr stays undefined.

/// The norm of x or, with r, of sum = x + r. Dense x, r, sum, y [N, C·T]; gain, bias [C]; mean, rstd [N]. T =
/// `repeat`; r and sum may be undefined.
void layer_norm_forward(const Tensor& x, const Tensor& r, const Tensor& gain, const Tensor& bias, int repeat,
                        double eps, Tensor& sum, Tensor& y, Tensor& mean, Tensor& rstd);
/// Dense x, grad, outer, dx, dr [N, C·T]; gain, dgain, dbias [C]; mean, rstd [N]. `outer` is added to dx, and
/// dr = dx in another type; both may be undefined.
void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                         const Tensor& grad, const Tensor& outer, int repeat, Tensor& dx, Tensor& dr,
                         Tensor& dgain, Tensor& dbias);

}  // namespace gyre::kernels::cpu
