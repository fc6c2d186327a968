#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// In-place updates over lists of dense device arrays, T = float or double: one launch for every 640 of them.

/// Arrays that belong together, of `count` elements; unused ones are null.
template <class T>
struct UpdateItem {
  T* p = nullptr;
  const T* g = nullptr;
  T* m = nullptr;
  T* v = nullptr;
  std::int64_t count = 0;
};

/// p = decay·p - step_size·m / (√v·inverse_correction + eps), with the means m of g and v of g² renewed
/// first; g is multiplied by grad_scale before all else.
struct AdamWFactors {
  double decay, beta1, beta2, step_size, inverse_correction, eps, grad_scale;
};
template <class T>
void launch_adamw(const UpdateItem<T>* items, std::int64_t count, const AdamWFactors& factors, void* stream);

/// p -= lr·direction for g + weight_decay·p: with a buffer m = momentum·m + that, m itself, or
/// (nesterov) that + momentum·m.
struct SgdFactors {
  double lr, momentum, weight_decay, grad_scale;
  bool nesterov;
};
template <class T>
void launch_sgd(const UpdateItem<T>* items, std::int64_t count, const SgdFactors& factors, void* stream);

/// p += weight·(g - p).
template <class T>
void launch_lerp(const UpdateItem<T>* items, std::int64_t count, double weight, void* stream);

/// Numbers of f64 that launch_sum_squares needs beside its arguments.
template <class T>
std::int64_t sum_squares_workspace(const UpdateItem<T>* items, std::int64_t count);
/// result = Σ g² over all items, in f64 and in a fixed order.
template <class T>
void launch_sum_squares(const UpdateItem<T>* items, std::int64_t count, double* workspace, double* result,
                        void* stream);

}  // namespace gyre::kernels::cuda
