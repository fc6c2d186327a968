#pragma once

#include <cstdint>

#include "kernels/optimizer.h"

namespace gyre::kernels::cpu {

/// A run of elements with the arrays that belong to it; unused ones are null.
template <class T>
struct ElementRange {
  T* p = nullptr;
  const T* g = nullptr;
  T* m = nullptr;
  T* v = nullptr;
  std::int64_t count = 0;
};

/// AdamW with everything that does not depend on the element worked out.
struct AdamWFactors {
  explicit AdamWFactors(const AdamWStep& options);
  double decay, beta1, beta2, step_size, inverse_correction, eps, grad_scale;
};

// Vectorised loops, per instruction set; the result of an element does not depend on where its range begins
// or ends.
void adamw_range(const ElementRange<float>& range, const AdamWFactors& factors);
void adamw_range(const ElementRange<double>& range, const AdamWFactors& factors);
void sgd_range(const ElementRange<float>& range, const SgdStep& options);
void sgd_range(const ElementRange<double>& range, const SgdStep& options);
/// p += weight·(g - p).
void lerp_range(const ElementRange<float>& range, double weight);
void lerp_range(const ElementRange<double>& range, double weight);
/// Σ g², accumulated in f64.
double sum_squares_range(const float* g, std::int64_t count);
double sum_squares_range(const double* g, std::int64_t count);

}  // namespace gyre::kernels::cpu
