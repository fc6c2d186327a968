#include "kernels/cpu/elementwise.h"

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Negate {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Neg(x);
  }
};
struct Exponential {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    // hn::Exp needs x below the overflow and turns NaN into zero.
    const double limit = sizeof(hn::TFromD<D>) == 4 ? 89.0 : 710.0;
    return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, hn::Min(x, number(d, limit))), x);
  }
};
struct Logarithm {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    // hn::Log holds for 0 < x < ∞; the square root has the wanted value at ∞, NaN and below zero.
    const auto infinity = number(d, std::numeric_limits<double>::infinity());
    const auto regular = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, infinity));
    const auto edge = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), hn::Sqrt(x));
    return hn::IfThenElse(regular, hn::Log(d, x), edge);
  }
};
struct SquareRoot {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Sqrt(x);
  }
};
struct HyperbolicTangent {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Tanh(d, x);
  }
};
struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
};
struct Gelu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, normal(d, x).cdf);
  }
};

// Derivative times gradient; s is x or f(x).
struct ExponentialGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D, V s, V grad) const {
    return hn::Mul(grad, s);
  }
};
struct LogarithmGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D, V s, V grad) const {
    return hn::Div(grad, s);
  }
};
struct SquareRootGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D, V s, V grad) const {
    return hn::Div(grad, hn::Add(s, s));
  }
};
struct HyperbolicTangentGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D, V s, V grad) const {
    return hn::NegMulAdd(hn::Mul(grad, s), s, grad);
  }
};
struct ReluGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V s, V grad) const {
    return hn::IfThenZeroElse(hn::Le(s, hn::Zero(d)), grad);
  }
};
struct GeluGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V s, V grad) const {
    const auto n = normal(d, s);
    const auto density = hn::Mul(n.exponential, number(d, 0.39894228040143268));
    return hn::Mul(grad, hn::MulAdd(s, density, n.cdf));
  }
};

template <class T>
HWY_INLINE void unary_range(UnaryOp op, const T* x, T* y, std::int64_t n) {
  switch (op) {
    case UnaryOp::neg: return map(n, y, Negate(), x);
    case UnaryOp::exp: return map(n, y, Exponential(), x);
    case UnaryOp::log: return map(n, y, Logarithm(), x);
    case UnaryOp::sqrt: return map(n, y, SquareRoot(), x);
    case UnaryOp::tanh: return map(n, y, HyperbolicTangent(), x);
    case UnaryOp::relu: return map(n, y, Relu(), x);
    case UnaryOp::gelu: return map(n, y, Gelu(), x);
  }
}

template <class T>
HWY_INLINE void unary_backward_range(UnaryOp op, const T* saved, const T* grad, T* result, std::int64_t n) {
  switch (op) {
    case UnaryOp::neg: return map(n, result, Negate(), grad);
    case UnaryOp::exp: return map(n, result, ExponentialGrad(), saved, grad);
    case UnaryOp::log: return map(n, result, LogarithmGrad(), saved, grad);
    case UnaryOp::sqrt: return map(n, result, SquareRootGrad(), saved, grad);
    case UnaryOp::tanh: return map(n, result, HyperbolicTangentGrad(), saved, grad);
    case UnaryOp::relu: return map(n, result, ReluGrad(), saved, grad);
    case UnaryOp::gelu: return map(n, result, GeluGrad(), saved, grad);
  }
}

template <class T>
HWY_INLINE void affine_range(const T* x, T scale, T shift, T* y, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto a = hn::Set(d, scale), b = hn::Set(d, shift);
  map(
      n, y, [&](auto, auto v) HWY_ATTR { return hn::MulAdd(v, a, b); }, x);
}

template <class T>
HWY_INLINE void add_range(T* accumulator, const T* x, T scale, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto s = hn::Set(d, scale);
  map(
      n, accumulator, [&](auto, auto sum, auto v) HWY_ATTR { return hn::MulAdd(v, s, sum); },
      static_cast<const T*>(accumulator), x);
}

#define GYRE_DEFINE(T, SUFFIX)                                                                         \
  void unary_##SUFFIX(UnaryOp op, const T* x, T* y, std::int64_t n) { unary_range(op, x, y, n); }      \
  void unary_backward_##SUFFIX(UnaryOp op, const T* saved, const T* grad, T* result, std::int64_t n) { \
    unary_backward_range(op, saved, grad, result, n);                                                  \
  }                                                                                                    \
  void affine_##SUFFIX(const T* x, T scale, T shift, T* y, std::int64_t n) {                           \
    affine_range(x, scale, shift, y, n);                                                               \
  }                                                                                                    \
  void add_##SUFFIX(T* accumulator, const T* x, T scale, std::int64_t n) {                             \
    add_range(accumulator, x, scale, n);                                                               \
  }
GYRE_DEFINE(float, f32)
GYRE_DEFINE(double, f64)
#undef GYRE_DEFINE

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

GYRE_EXPORT(unary);
GYRE_EXPORT(unary_backward);
GYRE_EXPORT(affine);
GYRE_EXPORT(add);

constexpr std::int64_t cheap_grain = 16384;    // elements per task, memory-bound operations
constexpr std::int64_t function_grain = 4096;  // with a transcendental function

}  // namespace

void unary(UnaryOp op, const Tensor& x, Tensor& y) {
  dispatch_floating(x.dtype(), "unary", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(unary, T);
    const T* px = x.data<T>();
    T* py = y.mutable_data<T>();
    parallel_for(0, x.numel(), function_grain, [&](std::int64_t first, std::int64_t last) {
      run(op, px + first, py + first, last - first);
    });
  });
}

void unary_backward(UnaryOp op, const Tensor& saved, const Tensor& grad, Tensor& result) {
  dispatch_floating(grad.dtype(), "unary_backward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(unary_backward, T);
    const T* ps = saved.data<T>();
    const T* pg = grad.data<T>();
    T* pr = result.mutable_data<T>();
    parallel_for(0, grad.numel(), function_grain, [&](std::int64_t first, std::int64_t last) {
      run(op, ps + first, pg + first, pr + first, last - first);
    });
  });
}

void affine(const Tensor& x, double scale, double shift, Tensor& y) {
  dispatch_floating(x.dtype(), "affine", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(affine, T);
    const T* px = x.data<T>();
    T* py = y.mutable_data<T>();
    parallel_for(0, x.numel(), cheap_grain, [&](std::int64_t first, std::int64_t last) {
      run(px + first, static_cast<T>(scale), static_cast<T>(shift), py + first, last - first);
    });
  });
}

void add_into(Tensor& accumulator, const Tensor& x, double scale) {
  dispatch_floating(x.dtype(), "add_into", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(add, T);
    const T* px = x.data<T>();
    T* sum = accumulator.mutable_data<T>();
    parallel_for(0, x.numel(), cheap_grain, [&](std::int64_t first, std::int64_t last) {
      run(sum + first, px + first, static_cast<T>(scale), last - first);
    });
  });
}

}  // namespace gyre::kernels::cpu
#endif
