#pragma once

#include "kernels/eq_linear.h"

namespace gyre::kernels::cpu {

// Three implementations of EQ-Linear; shapes are checked and tensors dense. Forward writes y [N, D, T].

/// One product with the expanded matrix.
void naive_eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                             EqPlanes& cache, Tensor& y);
LinearGrads naive_eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                                     bool need_x, bool need_w, EqPlanes& cache);

/// Whether x and dy stay in the caches.
constexpr bool rows_in_caches(int order, std::int64_t rows, std::int64_t channels_in,
                              std::int64_t channels_out) {
  return rows * (channels_in + channels_out) * order <= 1 << 20;
}
/// Whether naive computes dW by eq_weight_gradient.h; else the library computes the dense gradient.
bool naive_folds_in_registers(int order, std::int64_t rows, std::int64_t channels_in,
                              std::int64_t channels_out, int threads);

/// Library products on planes; f32 or f64.
void packed_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                              EqPlanes& cache, Tensor& y);
LinearGrads packed_eq_linear_backward(const BilinearForm& form, const Tensor& x, const Tensor& w,
                                      const Tensor& grad, bool need_x, bool need_w, EqPlanes& cache);

/// Transform, products, inverse and activation in one pass over the rows; f32. `pre_activation`, if given, is
/// as in eq_linear.h.
void flash_eq_linear_forward(const BilinearForm& form, const Tensor& x, const Tensor& w, const Tensor& b,
                             EqPlanes& cache, Activation activation, Tensor* pre_activation, Tensor& y);
/// Where that costs less (flash_costs.h), dW is computed by eq_weight_gradient.h, and db left undefined.
LinearGrads flash_eq_linear_backward(const Group& group, const BilinearForm& form, const Tensor& x,
                                     const Tensor& w, const Tensor& grad, bool need_x, bool need_w,
                                     bool need_b, EqPlanes& cache);

}  // namespace gyre::kernels::cpu
