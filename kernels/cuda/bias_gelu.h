#pragma once

#include "core/tensor.h"

namespace gyre::kernels {
struct BiasGeluGrads;
}

namespace gyre::kernels::cuda {

/// Dense before, grad [N, C·T]; T = `repeat`.
void bias_gelu_backward(const Tensor& before, const Tensor& grad, int repeat, BiasGeluGrads& result);

}  // namespace gyre::kernels::cuda
