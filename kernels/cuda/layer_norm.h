#pragma once

#include "core/tensor.h"

namespace gyre::kernels::cuda {

/// Dense x, y [N, C·T]; gain, bias dense [C]; mean, rstd [N]. T = `repeat`.
void layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat, double eps,
                        Tensor& y, Tensor& mean, Tensor& rstd);
/// Dense x, grad, dx [N, C·T]; gain, dgain, dbias [C]; mean, rstd [N].
void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                         const Tensor& grad, int repeat, Tensor& dx, Tensor& dgain, Tensor& dbias);

}  // namespace gyre::kernels::cuda
