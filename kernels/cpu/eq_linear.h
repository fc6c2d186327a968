#pragma once

#include "kernels/eq_linear.h"

namespace gyre::kernels::cpu {

// The two implementations of EQ-Linear; shapes are checked and tensors dense.

Tensor naive_eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b, EqPlanes& cache);
LinearGrads naive_eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache);

Tensor flash_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w,
                               const Tensor& b, EqPlanes& cache);
LinearGrads flash_eq_linear_backward(const BilinearForm& form, const Tensor& x, const Tensor& w,
                                     const Tensor& grad, bool need_x, bool need_w, EqPlanes& cache);

}  // namespace gyre::kernels::cpu
