#pragma once

#include "kernels/eq_linear.h"

namespace gyre::kernels {

// A call of EQ-Linear as the devices take it: checked, every tensor dense.

struct EqForward {
  const Group& group;
  const BilinearForm& form;  ///< of the product count asked for
  EqBackend backend;
  const Tensor &x, &w, &b;
  EqPlanes& cache;
  Activation activation;
  Tensor* pre_activation;
};

struct EqBackward {
  const Group& group;
  const BilinearForm& form;
  EqBackend backend;
  const Tensor &x, &w, &grad;
  bool need_x, need_w, need_b;
  EqPlanes& cache;
  const Tensor& before;  ///< what gelu was applied to, if it was
};

}  // namespace gyre::kernels
