#include "kernels/cpu/optimizer_loops.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizer_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls update(range) on vectors of elements; the last few go through padded copies, so that every element
/// sees the same instructions.
template <class T, class Update>
HWY_INLINE void for_vectors(const ElementRange<T>& range, Update update) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  const auto at = [&](T* data) { return data == nullptr ? nullptr : data + i; };
  for (; i + lanes <= range.count; i += lanes) update(d, range.p + i, range.g + i, at(range.m), at(range.v));
  const std::int64_t rest = range.count - i;
  if (rest == 0) return;
  HWY_ALIGN T p[HWY_MAX_BYTES / sizeof(T)] = {}, g[HWY_MAX_BYTES / sizeof(T)] = {};
  HWY_ALIGN T m[HWY_MAX_BYTES / sizeof(T)] = {}, v[HWY_MAX_BYTES / sizeof(T)] = {};
  std::copy_n(range.p + i, rest, p);
  std::copy_n(range.g + i, rest, g);
  if (range.m != nullptr) std::copy_n(range.m + i, rest, m);
  if (range.v != nullptr) std::copy_n(range.v + i, rest, v);
  update(d, p, g, m, v);
  std::copy_n(p, rest, range.p + i);
  if (range.m != nullptr) std::copy_n(m, rest, range.m + i);
  if (range.v != nullptr) std::copy_n(v, rest, range.v + i);
}

template <class T>
HWY_INLINE void adamw_all(const ElementRange<T>& range, const AdamWFactors& f) {
  const hn::ScalableTag<T> d;
  const auto decay = hn::Set(d, static_cast<T>(f.decay)), eps = hn::Set(d, static_cast<T>(f.eps));
  const auto beta1 = hn::Set(d, static_cast<T>(f.beta1)), beta2 = hn::Set(d, static_cast<T>(f.beta2));
  const auto rest1 = hn::Set(d, static_cast<T>(1 - f.beta1)), rest2 = hn::Set(d, static_cast<T>(1 - f.beta2));
  const auto step_size = hn::Set(d, static_cast<T>(f.step_size));
  const auto correction = hn::Set(d, static_cast<T>(f.inverse_correction));
  const auto scale = hn::Set(d, static_cast<T>(f.grad_scale));
  for_vectors(range, [&](auto, T* p, const T* g, T* m, T* v) HWY_ATTR {
    const auto grad = hn::Mul(hn::LoadU(d, g), scale);
    const auto first = hn::MulAdd(rest1, grad, hn::Mul(beta1, hn::LoadU(d, m)));
    const auto second = hn::MulAdd(hn::Mul(rest2, grad), grad, hn::Mul(beta2, hn::LoadU(d, v)));
    const auto bound = hn::MulAdd(hn::Sqrt(second), correction, eps);
    const auto step = hn::Div(hn::Mul(step_size, first), bound);
    hn::StoreU(hn::Sub(hn::Mul(hn::LoadU(d, p), decay), step), d, p);
    hn::StoreU(first, d, m);
    hn::StoreU(second, d, v);
  });
}

template <class T>
HWY_INLINE void sgd_all(const ElementRange<T>& range, const SgdStep& o) {
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(o.grad_scale)),
             decay = hn::Set(d, static_cast<T>(o.weight_decay));
  const auto momentum = hn::Set(d, static_cast<T>(o.momentum)), lr = hn::Set(d, static_cast<T>(o.lr));
  const bool has_buffer = range.m != nullptr, nesterov = o.nesterov;
  for_vectors(range, [&](auto, T* p, const T* g, T* m, T*) HWY_ATTR {
    const auto old = hn::LoadU(d, p);
    const auto grad = hn::MulAdd(decay, old, hn::Mul(hn::LoadU(d, g), scale));
    auto direction = grad;
    if (has_buffer) {
      const auto buffer = hn::MulAdd(momentum, hn::LoadU(d, m), grad);
      hn::StoreU(buffer, d, m);
      direction = nesterov ? hn::MulAdd(momentum, buffer, grad) : buffer;
    }
    hn::StoreU(hn::NegMulAdd(lr, direction, old), d, p);
  });
}

template <class T>
HWY_INLINE void lerp_all(const ElementRange<T>& range, double weight) {
  const hn::ScalableTag<T> d;
  const auto w = hn::Set(d, static_cast<T>(weight));
  for_vectors(range, [&](auto, T* p, const T* g, T*, T*) HWY_ATTR {
    const auto target = hn::LoadU(d, p);
    hn::StoreU(hn::MulAdd(w, hn::Sub(hn::LoadU(d, g), target), target), d, p);
  });
}

template <class D>
HWY_INLINE hn::Vec<hn::ScalableTag<double>> load_f64(D d, const double* g) {
  return hn::LoadU(d, g);
}
template <class D>
HWY_INLINE hn::Vec<hn::ScalableTag<double>> load_f64(D d, const float* g) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), g));
}

template <class T>
HWY_INLINE double sum_squares_all(const T* g, std::int64_t count) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto x0 = load_f64(d, g + i), x1 = load_f64(d, g + i + lanes);
    sum0 = hn::MulAdd(x0, x0, sum0);
    sum1 = hn::MulAdd(x1, x1, sum1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < count; ++i) sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
  return sum;
}

// One plain function per type, for the dispatch tables.
void adamw_f32(const ElementRange<float>& r, const AdamWFactors& f) { adamw_all(r, f); }
void adamw_f64(const ElementRange<double>& r, const AdamWFactors& f) { adamw_all(r, f); }
void sgd_f32(const ElementRange<float>& r, const SgdStep& o) { sgd_all(r, o); }
void sgd_f64(const ElementRange<double>& r, const SgdStep& o) { sgd_all(r, o); }
void lerp_f32(const ElementRange<float>& r, double weight) { lerp_all(r, weight); }
void lerp_f64(const ElementRange<double>& r, double weight) { lerp_all(r, weight); }
double sum_squares_f32(const float* g, std::int64_t count) { return sum_squares_all(g, count); }
double sum_squares_f64(const double* g, std::int64_t count) { return sum_squares_all(g, count); }

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {

HWY_EXPORT(adamw_f32);
HWY_EXPORT(adamw_f64);
HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_f64);
HWY_EXPORT(lerp_f32);
HWY_EXPORT(lerp_f64);
HWY_EXPORT(sum_squares_f32);
HWY_EXPORT(sum_squares_f64);

AdamWFactors::AdamWFactors(const AdamWStep& o)
    : decay(1 - o.lr * o.weight_decay),
      beta1(o.beta1),
      beta2(o.beta2),
      step_size(o.lr / (1 - std::pow(o.beta1, static_cast<double>(o.step)))),
      inverse_correction(1 / std::sqrt(1 - std::pow(o.beta2, static_cast<double>(o.step)))),
      eps(o.eps),
      grad_scale(o.grad_scale) {}

void adamw_range(const ElementRange<float>& r, const AdamWFactors& f) { GYRE_CHOSEN(adamw_f32)(r, f); }
void adamw_range(const ElementRange<double>& r, const AdamWFactors& f) { GYRE_CHOSEN(adamw_f64)(r, f); }
void sgd_range(const ElementRange<float>& r, const SgdStep& o) { GYRE_CHOSEN(sgd_f32)(r, o); }
void sgd_range(const ElementRange<double>& r, const SgdStep& o) { GYRE_CHOSEN(sgd_f64)(r, o); }
void lerp_range(const ElementRange<float>& r, double w) { GYRE_CHOSEN(lerp_f32)(r, w); }
void lerp_range(const ElementRange<double>& r, double w) { GYRE_CHOSEN(lerp_f64)(r, w); }
double sum_squares_range(const float* g, std::int64_t n) { return GYRE_CHOSEN(sum_squares_f32)(g, n); }
double sum_squares_range(const double* g, std::int64_t n) { return GYRE_CHOSEN(sum_squares_f64)(g, n); }

}  // namespace gyre::kernels::cpu
#endif  // HWY_ONCE
