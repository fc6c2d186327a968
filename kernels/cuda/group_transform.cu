#include "kernels/cuda/group_transform_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int block = 256;

/// The matrix in the type of the arithmetic: a kernel argument, so that products read it as constants.
template <class C, int count>
struct Coefficients {
  C values[count];
  explicit Coefficients(const GroupMatrix& m) : values() {
    for (int i = 0; i < count; ++i) values[i] = static_cast<C>(m.values[i]);
  }
};

/// Channels of a thread: as many as fill 16 bytes with their elements.
template <class T, int order>
constexpr int channel_count() {
  return pack_size<T> > order ? pack_size<T> / order : 1;
}

/// A thread transforms `channels` neighbours.
template <class T, int order, int products, int channels, bool packs>
GYRE_KERNEL(block)
to_planes_kernel(Coefficients<Wide<T>, order * products> m, std::int64_t units, const T* x,
                 std::int64_t plane, T* planes) {
  const std::int64_t unit = prim::global_thread();
  if (unit >= units) return;
  Wide<T> v[channels * order];
  load_run<packs>(x + unit * channels * order, v);
  GYRE_UNROLL
  for (int p = 0; p < products; ++p) {
    Wide<T> sums[channels];
    GYRE_UNROLL
    for (int c = 0; c < channels; ++c) {
      sums[c] = 0;
      GYRE_UNROLL
      for (int t = 0; t < order; ++t) sums[c] += m.values[p * order + t] * v[c * order + t];
    }
    store_run<packs>(sums, planes + p * plane + unit * channels);
  }
}

template <class P, class T, int order, int products, int channels, bool packs>
GYRE_KERNEL(block)
from_planes_kernel(Coefficients<Wide<T>, order * products> m, std::int64_t units, std::int64_t plane,
                   const P* planes, PlanesTo<T> to) {
  const std::int64_t unit = prim::global_thread();
  if (unit >= units) return;
  const std::int64_t at = unit * channels;
  Wide<T> v[channels * order];
  GYRE_UNROLL
  for (int c = 0; c < channels; ++c) {
    const Wide<T> start = to.bias != nullptr ? prim::widen(to.bias[(at + c) % to.channels]) : Wide<T>(0);
    GYRE_UNROLL
    for (int t = 0; t < order; ++t) v[c * order + t] = start;
  }
  GYRE_UNROLL
  for (int p = 0; p < products; ++p) {
    Wide<T> a[channels];
    load_run<packs>(planes + p * plane + at, a);
    GYRE_UNROLL
    for (int c = 0; c < channels; ++c) {
      GYRE_UNROLL
      for (int t = 0; t < order; ++t) v[c * order + t] += m.values[t * products + p] * a[c];
    }
  }
  if (to.sum != nullptr) store_run<packs>(v, to.sum + at * order);
  if (to.gelu) {
    GYRE_UNROLL
    for (int i = 0; i < channels * order; ++i) v[i] *= normal_cdf(v[i]);
  }
  store_run<packs>(v, to.y + at * order);
}

/// Calls f(order, products) as constants; false if there are no kernels for them.
template <class F>
bool with_form(int order, int products, F f) {
  const auto is = [&](int t, int p) { return order == t && products == p; };
  const auto call = [&](auto t, auto p) {
    f(t, p);
    return true;
  };
  using std::integral_constant;
  if (is(1, 1)) return call(integral_constant<int, 1>(), integral_constant<int, 1>());
  if (is(2, 2)) return call(integral_constant<int, 2>(), integral_constant<int, 2>());
  if (is(4, 5)) return call(integral_constant<int, 4>(), integral_constant<int, 5>());
  if (is(4, 6)) return call(integral_constant<int, 4>(), integral_constant<int, 6>());
  if (is(8, 11)) return call(integral_constant<int, 8>(), integral_constant<int, 11>());
  if (is(8, 12)) return call(integral_constant<int, 8>(), integral_constant<int, 12>());
  if (is(8, 14)) return call(integral_constant<int, 8>(), integral_constant<int, 14>());
  return false;
}

}  // namespace

bool has_group_transform(int order, int products) {
  return with_form(order, products, [](auto, auto) {});
}

template <class T>
void launch_to_planes(const GroupMatrix& m, std::int64_t count, const T* x, std::int64_t plane, T* planes,
                      void* stream) {
  with_form(m.cols, m.rows, [&](auto t, auto p) {
    constexpr int order = t, products = p, channels = channel_count<T, order>();
    const Coefficients<Wide<T>, order * products> coefficients(m);
    if (count % channels == 0 && plane % channels == 0 && aligned(x, planes))
      GYRE_LAUNCH((to_planes_kernel<T, order, products, channels, true>),
                  prim::Grid{prim::blocks(count / channels, block)}, block, 0, stream, coefficients,
                  count / channels, x, plane, planes);
    else
      GYRE_LAUNCH((to_planes_kernel<T, order, products, 1, false>), prim::Grid{prim::blocks(count, block)},
                  block, 0, stream, coefficients, count, x, plane, planes);
  });
}

template <class P, class T>
void launch_from_planes(const GroupMatrix& m, std::int64_t count, std::int64_t plane, const P* planes,
                        const PlanesTo<T>& to, void* stream) {
  with_form(m.rows, m.cols, [&](auto t, auto p) {
    constexpr int order = t, products = p, channels = channel_count<T, order>();
    const Coefficients<Wide<T>, order * products> coefficients(m);
    if (count % channels == 0 && plane % channels == 0 && aligned(planes, to.y, to.sum))
      GYRE_LAUNCH((from_planes_kernel<P, T, order, products, channels, true>),
                  prim::Grid{prim::blocks(count / channels, block)}, block, 0, stream, coefficients,
                  count / channels, plane, planes, to);
    else
      GYRE_LAUNCH((from_planes_kernel<P, T, order, products, 1, false>),
                  prim::Grid{prim::blocks(count, block)}, block, 0, stream, coefficients, count, plane,
                  planes, to);
  });
}

#define GYRE_INSTANTIATE(T)                                                                            \
  template void launch_to_planes(const GroupMatrix&, std::int64_t, const T*, std::int64_t, T*, void*); \
  template void launch_from_planes(const GroupMatrix&, std::int64_t, std::int64_t, const T*,           \
                                   const PlanesTo<T>&, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE
template void launch_from_planes(const GroupMatrix&, std::int64_t, std::int64_t, const float*,
                                 const PlanesTo<prim::half_t>&, void*);
template void launch_from_planes(const GroupMatrix&, std::int64_t, std::int64_t, const float*,
                                 const PlanesTo<prim::bf16_t>&, void*);

}  // namespace gyre::kernels::cuda
