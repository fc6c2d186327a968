#pragma once

#include "core/tensor.h"

namespace gyre::kernels {

struct BiasGeluGrads {
  Tensor x, bias;
};
/// Back through y = gelu(x + bias) with the exact error function: from before = x + bias [N, C·T] and the
/// gradient of y, those of x [N, C·T] and of bias [C], which repeats over T = `repeat` consecutive channels.
/// f32 or f64; on CUDA also f16 or bf16, with the gradient of bias in f32, and one pass. Throws ShapeError,
/// DTypeError or DeviceError.
BiasGeluGrads bias_gelu_backward(const Tensor& before, const Tensor& grad, int repeat = 1);

}  // namespace gyre::kernels
