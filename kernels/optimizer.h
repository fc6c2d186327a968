#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace gyre::kernels {

// In-place updates over lists of dense f32 or f64 tensors, one parallel region per call. Lists pair up by
// index; tensors of a pair agree in shape and type. Undefined gradients skip their parameter. Errors:
// ShapeError, DTypeError, ValueError.

/// AdamW (Loshchilov & Hutter, arXiv 1711.05101): p -= lr·weight_decay·p, then p -= lr·m̂/(√v̂ + eps).
struct AdamWStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  std::int64_t step = 1;  ///< number of this update, from 1: bias correction
  double grad_scale = 1;  ///< gradients are multiplied by it first (clipping, unscaling)
};
void adamw_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
                std::span<Tensor> v, const AdamWStep& options);

/// Stochastic gradient descent; decay is coupled (g += weight_decay·p), b = momentum·b + g, and the step is
/// lr·b, with nesterov lr·(g + momentum·b). Buffers start at zero.
struct SgdStep {
  double lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double grad_scale = 1;
};
/// `buffers` may be empty if momentum is 0.
void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> buffers,
              const SgdStep& options);

/// target += weight·(source - target): averaged weights.
void lerp_(std::span<Tensor> target, std::span<const Tensor> source, double weight);

/// √Σ g² over all tensors, accumulated in f64; the same for every thread count.
double global_norm(std::span<const Tensor> grads);

}  // namespace gyre::kernels
