#include "kernels/cuda/elementwise_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int block = 256;
constexpr std::int64_t most_blocks = 4096;  // the rest is looped over

struct Negate {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return -x;
  }
};
struct Exponential {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return exp_of(x);
  }
};
struct Logarithm {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return log_of(x);
  }
};
struct SquareRoot {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return sqrt_of(x);
  }
};
struct HyperbolicTangent {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return tanh_of(x);
  }
};
struct Relu {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return x < C(0) ? C(0) : x;
  }
};
struct Gelu {
  template <class C>
  GYRE_DEVICE C operator()(C x) const {
    return x * normal_cdf(x);
  }
};
template <class C>
struct Affine {
  C scale, shift;
  GYRE_DEVICE C operator()(C x) const { return x * scale + shift; }
};

// Derivative times gradient; s is x or f(x).
struct NegateGrad {
  template <class C>
  GYRE_DEVICE C operator()(C, C grad) const {
    return -grad;
  }
};
struct ExponentialGrad {
  template <class C>
  GYRE_DEVICE C operator()(C s, C grad) const {
    return grad * s;
  }
};
struct LogarithmGrad {
  template <class C>
  GYRE_DEVICE C operator()(C s, C grad) const {
    return grad / s;
  }
};
struct SquareRootGrad {
  template <class C>
  GYRE_DEVICE C operator()(C s, C grad) const {
    return grad / (s + s);
  }
};
struct HyperbolicTangentGrad {
  template <class C>
  GYRE_DEVICE C operator()(C s, C grad) const {
    return grad - grad * s * s;
  }
};
struct ReluGrad {
  template <class C>
  GYRE_DEVICE C operator()(C s, C grad) const {
    return s <= C(0) ? C(0) : grad;
  }
};
struct GeluGrad {
  template <class C>
  GYRE_DEVICE C operator()(C s, C grad) const {
    return grad * gelu_slope(s);
  }
};
template <class C>
struct AddScaled {
  C scale;
  GYRE_DEVICE C operator()(C sum, C x) const { return sum + scale * x; }
};

/// y = f(x): `packs` packs, then single elements up to n.
template <class T, class F>
GYRE_KERNEL(block, 2)
map_kernel(F f, const T* x, T* y, std::int64_t packs, std::int64_t n) {
  constexpr int width = pack_size<T>;
  const std::int64_t step = prim::global_threads();
  for (std::int64_t i = prim::global_thread(); i < packs; i += step) {
    Wide<T> v[width];
    load(x + i * width, v);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) v[k] = f(v[k]);
    store(v, y + i * width);
  }
  for (std::int64_t i = packs * width + prim::global_thread(); i < n; i += step)
    y[i] = prim::from_float<T>(f(prim::widen(x[i])));
}

/// y = f(a, b); y may be a.
template <class T, class F>
GYRE_KERNEL(block)
map_pair_kernel(F f, const T* a, const T* b, T* y, std::int64_t packs, std::int64_t n) {
  constexpr int width = pack_size<T>;
  const std::int64_t step = prim::global_threads();
  for (std::int64_t i = prim::global_thread(); i < packs; i += step) {
    Wide<T> v[width], w[width];
    load(a + i * width, v);
    load(b + i * width, w);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) v[k] = f(v[k], w[k]);
    store(v, y + i * width);
  }
  for (std::int64_t i = packs * width + prim::global_thread(); i < n; i += step)
    y[i] = prim::from_float<T>(f(prim::widen(a[i]), prim::widen(b[i])));
}

template <class C>
GYRE_DEVICE C combine(BinaryOp op, C a, C b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
  }
  return a;
}

/// Each thread takes Width neighbours of the innermost dimension.
template <class T, class Index, int Width>
GYRE_KERNEL(block)
binary_kernel(BinaryOp op, BroadcastLoop loop, const T* a, const T* b, T* y, Index units) {
  const Index step = static_cast<Index>(prim::global_threads());
  const int inner = loop.rank - 1;
  const std::int64_t a_step = loop.a[inner], b_step = loop.b[inner];
  for (Index unit = static_cast<Index>(prim::global_thread()); unit < units; unit += step) {
    const Index row = static_cast<Index>(loop.extent[inner] / Width);
    Index rest = unit / row;
    const std::int64_t column = static_cast<std::int64_t>(unit % row) * Width;
    std::int64_t at_a = column * a_step, at_b = column * b_step;
    for (int dim = inner - 1; dim >= 0; --dim) {
      const Index extent = static_cast<Index>(loop.extent[dim]), next = rest / extent;
      const auto index = static_cast<std::int64_t>(rest - next * extent);
      at_a += index * loop.a[dim];
      at_b += index * loop.b[dim];
      rest = next;
    }
    if constexpr (Width == 1) {
      y[unit] = prim::from_float<T>(combine(op, prim::widen(a[at_a]), prim::widen(b[at_b])));
    } else {
      Wide<T> v[Width], w[Width];
      if (a_step == 0) {
        const Wide<T> value = prim::widen(a[at_a]);
        GYRE_UNROLL
        for (int k = 0; k < Width; ++k) v[k] = value;
      } else {
        load(a + at_a, v);
      }
      if (b_step == 0) {
        const Wide<T> value = prim::widen(b[at_b]);
        GYRE_UNROLL
        for (int k = 0; k < Width; ++k) w[k] = value;
      } else {
        load(b + at_b, w);
      }
      GYRE_UNROLL
      for (int k = 0; k < Width; ++k) v[k] = combine(op, v[k], w[k]);
      store(v, y + static_cast<std::int64_t>(unit) * Width);
    }
  }
}

prim::Grid grid_for(std::int64_t units) {
  const std::int64_t blocks = prim::blocks(units, block);
  return {blocks < most_blocks ? blocks : most_blocks};
}

template <class T, class F>
void map(F f, const T* x, T* y, std::int64_t n, void* stream) {
  const std::int64_t packs = aligned(x, y) ? n / pack_size<T> : 0;
  GYRE_LAUNCH((map_kernel<T, F>), grid_for(packs > 0 ? packs : n), block, 0, stream, f, x, y, packs, n);
}

template <class T, class F>
void map_pair(F f, const T* a, const T* b, T* y, std::int64_t n, void* stream) {
  const std::int64_t packs = aligned(a, b, y) ? n / pack_size<T> : 0;
  GYRE_LAUNCH((map_pair_kernel<T, F>), grid_for(packs > 0 ? packs : n), block, 0, stream, f, a, b, y, packs,
              n);
}

/// Packs of the innermost dimension can be read on 16-byte boundaries.
template <class T>
bool takes_packs(const BroadcastLoop& loop, const T* a, const T* b, const T* y) {
  const int inner = loop.rank - 1;
  const auto fits = [&](const std::int64_t* strides, const T* data) {
    if (strides[inner] == 0) return true;
    if (strides[inner] != 1 || !aligned(data)) return false;
    for (int dim = 0; dim < inner; ++dim)
      if (strides[dim] % pack_size<T> != 0) return false;
    return true;
  };
  return loop.extent[inner] % pack_size<T> == 0 && aligned(y) && fits(loop.a, a) && fits(loop.b, b);
}

}  // namespace

template <class T>
void launch_unary(UnaryOp op, const T* x, T* y, std::int64_t n, void* stream) {
  switch (op) {
    case UnaryOp::neg: return map(Negate(), x, y, n, stream);
    case UnaryOp::exp: return map(Exponential(), x, y, n, stream);
    case UnaryOp::log: return map(Logarithm(), x, y, n, stream);
    case UnaryOp::sqrt: return map(SquareRoot(), x, y, n, stream);
    case UnaryOp::tanh: return map(HyperbolicTangent(), x, y, n, stream);
    case UnaryOp::relu: return map(Relu(), x, y, n, stream);
    case UnaryOp::gelu: return map(Gelu(), x, y, n, stream);
  }
}

template <class T>
void launch_unary_backward(UnaryOp op, const T* saved, const T* grad, T* result, std::int64_t n,
                           void* stream) {
  switch (op) {
    case UnaryOp::neg: return map_pair(NegateGrad(), grad, grad, result, n, stream);
    case UnaryOp::exp: return map_pair(ExponentialGrad(), saved, grad, result, n, stream);
    case UnaryOp::log: return map_pair(LogarithmGrad(), saved, grad, result, n, stream);
    case UnaryOp::sqrt: return map_pair(SquareRootGrad(), saved, grad, result, n, stream);
    case UnaryOp::tanh: return map_pair(HyperbolicTangentGrad(), saved, grad, result, n, stream);
    case UnaryOp::relu: return map_pair(ReluGrad(), saved, grad, result, n, stream);
    case UnaryOp::gelu: return map_pair(GeluGrad(), saved, grad, result, n, stream);
  }
}

template <class T>
void launch_affine(const T* x, double scale, double shift, T* y, std::int64_t n, void* stream) {
  using C = Wide<T>;
  map(Affine<C>{static_cast<C>(scale), static_cast<C>(shift)}, x, y, n, stream);
}

template <class T>
void launch_add_into(T* sum, const T* x, double scale, std::int64_t n, void* stream) {
  map_pair(AddScaled<Wide<T>>{static_cast<Wide<T>>(scale)}, sum, x, sum, n, stream);
}

template <class T>
void launch_binary(BinaryOp op, const BroadcastLoop& loop, const T* a, const T* b, T* y, void* stream) {
  constexpr int width = pack_size<T>;
  std::int64_t n = 1;
  for (int dim = 0; dim < loop.rank; ++dim) n *= loop.extent[dim];
  const bool packs = takes_packs(loop, a, b, y);
  const std::int64_t units = packs ? n / width : n;
  if (units >= INT32_MAX) {
    if (packs)
      GYRE_LAUNCH((binary_kernel<T, std::uint64_t, width>), grid_for(units), block, 0, stream, op, loop, a, b,
                  y, static_cast<std::uint64_t>(units));
    else
      GYRE_LAUNCH((binary_kernel<T, std::uint64_t, 1>), grid_for(units), block, 0, stream, op, loop, a, b, y,
                  static_cast<std::uint64_t>(units));
  } else {
    if (packs)
      GYRE_LAUNCH((binary_kernel<T, std::uint32_t, width>), grid_for(units), block, 0, stream, op, loop, a, b,
                  y, static_cast<std::uint32_t>(units));
    else
      GYRE_LAUNCH((binary_kernel<T, std::uint32_t, 1>), grid_for(units), block, 0, stream, op, loop, a, b, y,
                  static_cast<std::uint32_t>(units));
  }
}

#define GYRE_INSTANTIATE(T)                                                                  \
  template void launch_unary(UnaryOp, const T*, T*, std::int64_t, void*);                    \
  template void launch_unary_backward(UnaryOp, const T*, const T*, T*, std::int64_t, void*); \
  template void launch_affine(const T*, double, double, T*, std::int64_t, void*);            \
  template void launch_add_into(T*, const T*, double, std::int64_t, void*);                  \
  template void launch_binary(BinaryOp, const BroadcastLoop&, const T*, const T*, T*, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
