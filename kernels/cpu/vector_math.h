// Vector maths and partial loads shared by the Highway kernels; compiled once per instruction set.
#if defined(GYRE_KERNELS_CPU_VECTOR_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GYRE_KERNELS_CPU_VECTOR_MATH_H_
#undef GYRE_KERNELS_CPU_VECTOR_MATH_H_
#else
#define GYRE_KERNELS_CPU_VECTOR_MATH_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// A kernel NAME has two instances, NAME_f32 and NAME_f64; GYRE_DISPATCH is the pointer for this machine and
// type T.
#undef GYRE_EXPORT
#define GYRE_EXPORT(NAME) \
  HWY_EXPORT(NAME##_f32); \
  HWY_EXPORT(NAME##_f64)
#undef GYRE_DISPATCH
#define GYRE_DISPATCH(NAME, T)              \
  [] {                                      \
    if constexpr (std::is_same_v<T, float>) \
      return &GYRE_CHOSEN(NAME##_f32);      \
    else                                    \
      return &GYRE_CHOSEN(NAME##_f64);      \
  }()

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE std::int64_t lane_count(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

/// The mask of the first n lanes.
template <class D>
HWY_INLINE hn::Mask<D> first_lanes(D d, std::int64_t n) {
  return hn::FirstN(d, static_cast<std::size_t>(n));
}

/// Loads p[0, n) for 0 ≤ n ≤ lanes and touches nothing beyond; the other lanes are zero.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_part(D d, const T* p, std::int64_t n) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(first_lanes(d, n), d, p);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  for (std::int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

/// Stores the first n lanes to p[0, n) and touches nothing beyond.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_part(hn::Vec<D> v, D d, T* p, std::int64_t n) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, first_lanes(d, n), d, p);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  hn::Store(v, d, lanes);
  for (std::int64_t i = 0; i < n; ++i) p[i] = lanes[i];
#endif
}

/// y[i] = f(x[i]...), lane by lane.
template <class T, class F, class... Inputs>
HWY_INLINE void map(std::int64_t n, T* y, F f, const Inputs*... x) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)...), d, y + i);
  if (i < n) store_part(f(d, load_part(d, x + i, n - i)...), d, y + i, n - i);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE T sum_lanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

template <class D>
HWY_INLINE hn::Vec<D> number(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

/// c0 + x (c1 + x (c2 + …)).
template <class D>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D>, double c0) {
  return number(d, c0);
}
template <class D, class... Rest>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> x, double c0, Rest... rest) {
  return hn::MulAdd(polynomial(d, x, rest...), x, number(d, c0));
}

/// e^x for x ≤ 0, NaN for NaN; f32: relative error 1.2e-7, zero below -87.
template <class D>
HWY_INLINE hn::Vec<D> exp_nonpositive(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    // Adding 1.5·2^23 rounds to an integer n that sits in the low bits; 127 more makes it the exponent of
    // 2^n.
    const auto magic = number(d, 12582912.0 + 127.0);
    const auto shifted = hn::MulAdd(x, number(d, 1.44269504088896341), magic);
    const auto n = hn::Sub(shifted, magic);
    // ln 2 in two parts, the first short enough for an exact product.
    auto r = hn::NegMulAdd(n, number(d, 0.693145751953125), x);
    r = hn::NegMulAdd(n, number(d, 1.428606765330187045e-6), r);
    // Minimax fit of e^r on |r| ≤ ln 2 / 2, relative error 3.1e-9.
    const auto y = polynomial(d, r, 1.0, 1.0, 0.4999999344041138, 0.16666520522096548, 0.041668389335028685,
                              0.008368730182680355, 0.0013814571166450049);
    const hn::RebindToUnsigned<D> du;
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
    return hn::IfThenZeroElse(hn::Lt(x, number(d, -87.0)), hn::Mul(y, power));
  } else {
    return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
  }
}

/// Standard normal distribution function Φ(x) and e^(-x²/2).
template <class D>
struct Normal {
  hn::Vec<D> cdf, exponential;
};
template <class D>
HWY_INLINE Normal<D> normal(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto exponential = exp_nonpositive(d, hn::Mul(hn::Mul(x, x), number(d, -0.5)));
  if constexpr (std::is_same_v<T, float>) {
    // Φ(-|x|) = e^(-x²/2) t P(t), t = 1/(1 + 0.26 |x|): minimax fit on |x| ≤ 14, relative error 2.5e-8.
    const auto t = hn::Div(number(d, 1.0), hn::MulAdd(hn::Abs(x), number(d, 0.26), number(d, 1.0)));
    const auto p = polynomial(d, t, 0.10375905953244242, 0.10301675605083435, 0.10303020994380828,
                              0.05102787214283414, 0.1609473578411588, -0.15094815987379975,
                              0.251490507632902, -0.1528284061300983, 0.030504790483673695);
    const auto tail = hn::Mul(hn::Mul(exponential, t), p);
    return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(number(d, 1.0), tail)), exponential};
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(x, d, lanes);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i)
      lanes[i] = T(0.5) * std::erfc(lanes[i] * T(-0.70710678118654752));
    return {hn::Load(d, lanes), exponential};
  }
}

/// y[i] = e^(x[i] - maximum); y may be x.
template <class T>
struct SoftmaxRow {
  T maximum, sum;  ///< of x, and of y
};
template <class D, class T = hn::TFromD<D>>
HWY_INLINE SoftmaxRow<T> exponentiate_row(D d, const T* x, T* y, std::int64_t n) {
  const std::int64_t lanes = lane_count(d), whole = n - n % lanes, rest = n - whole;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto mask = first_lanes(d, rest);
  auto most = lowest;
  for (std::int64_t i = 0; i < whole; i += lanes) most = hn::Max(most, hn::LoadU(d, x + i));
  auto last = hn::Zero(d);
  if (rest != 0) {
    last = load_part(d, x + whole, rest);
    most = hn::Max(most, hn::IfThenElse(mask, last, lowest));
  }
  most = hn::MaxOfLanes(d, most);
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < whole; i += lanes) {
    const auto e = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i), most));
    sum = hn::Add(sum, e);
    hn::StoreU(e, d, y + i);
  }
  if (rest != 0) {
    const auto e = exp_nonpositive(d, hn::Sub(last, most));
    sum = hn::Add(sum, hn::IfThenElseZero(mask, e));
    store_part(e, d, y + whole, rest);
  }
  return {hn::GetLane(most), sum_lanes(d, sum)};
}

/// y[i] *= factor.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void scale_row(D d, T factor, T* y, std::int64_t n) {
  const std::int64_t lanes = lane_count(d);
  const auto f = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(f, hn::LoadU(d, y + i)), d, y + i);
  if (i < n) store_part(hn::Mul(f, load_part(d, y + i, n - i)), d, y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif  // GYRE_KERNELS_CPU_VECTOR_MATH_H_
