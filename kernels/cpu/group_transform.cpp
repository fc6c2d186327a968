#include "kernels/cpu/group_transform.h"

#include <array>

#include "core/error.h"
#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/group_transform.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int G, class T>
void to_planes_rows(int products, const T* m, std::int64_t first, std::int64_t last, std::int64_t channels,
                    std::int64_t plane, const T* x, T* planes) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t n = first; n < last; ++n) {
    const T* row = x + n * channels * G;
    T* out = planes + n * channels;
    for (std::int64_t c = 0; c < channels; c += lanes) {
      hn::Vec<decltype(d)> v[G];
      load_some_elements<G>(d, row + c * G, channels - c, v);
      for (int p = 0; p < products; ++p)
        store_some(d, combine<G>(d, m + p * G, v), channels - c, out + p * plane + c);
    }
  }
}

template <int G, class T>
void from_planes_rows(int products, const T* m, std::int64_t first, std::int64_t last, std::int64_t channels,
                      std::int64_t plane, const T* planes, const T* bias, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t n = first; n < last; ++n) {
    const T* in = planes + n * channels;
    T* row = y + n * channels * G;
    for (std::int64_t c = 0; c < channels; c += lanes) {
      hn::Vec<decltype(d)> v[G];
      const auto start = bias ? load_some(d, bias + c, channels - c) : hn::Zero(d);
      for (int t = 0; t < G; ++t) v[t] = start;
      for (int p = 0; p < products; ++p) {
        const auto a = load_some(d, in + p * plane + c, channels - c);
        for (int t = 0; t < G; ++t) v[t] = hn::MulAdd(hn::Set(d, m[t * products + p]), a, v[t]);
      }
      store_some_elements<G>(d, v, channels - c, row + c * G);
    }
  }
}

#define GYRE_TRANSFORM(G, T, SUFFIX)                                                                   \
  void to_planes_##SUFFIX(int products, const T* m, std::int64_t first, std::int64_t last,             \
                          std::int64_t channels, std::int64_t plane, const T* x, T* planes) {          \
    to_planes_rows<G, T>(products, m, first, last, channels, plane, x, planes);                        \
  }                                                                                                    \
  void from_planes_##SUFFIX(int products, const T* m, std::int64_t first, std::int64_t last,           \
                            std::int64_t channels, std::int64_t plane, const T* planes, const T* bias, \
                            T* y) {                                                                    \
    from_planes_rows<G, T>(products, m, first, last, channels, plane, planes, bias, y);                \
  }
GYRE_TRANSFORM(1, float, 1_f32)
GYRE_TRANSFORM(2, float, 2_f32)
GYRE_TRANSFORM(4, float, 4_f32)
GYRE_TRANSFORM(8, float, 8_f32)
GYRE_TRANSFORM(1, double, 1_f64)
GYRE_TRANSFORM(2, double, 2_f64)
GYRE_TRANSFORM(4, double, 4_f64)
GYRE_TRANSFORM(8, double, 8_f64)
#undef GYRE_TRANSFORM

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

#define GYRE_EXPORT_ORDER(SUFFIX) \
  HWY_EXPORT(to_planes_##SUFFIX); \
  HWY_EXPORT(from_planes_##SUFFIX);
GYRE_EXPORT_ORDER(1_f32)
GYRE_EXPORT_ORDER(2_f32)
GYRE_EXPORT_ORDER(4_f32)
GYRE_EXPORT_ORDER(8_f32)
GYRE_EXPORT_ORDER(1_f64)
GYRE_EXPORT_ORDER(2_f64)
GYRE_EXPORT_ORDER(4_f64)
GYRE_EXPORT_ORDER(8_f64)
#undef GYRE_EXPORT_ORDER

/// Coefficients in the element type, dense row-major.
template <class T>
std::array<T, 128> constants(const Matrix& m) {
  require<ShapeError>(m.values.size() <= 128, "group transform: {}x{} matrix is too large", m.rows, m.cols);
  std::array<T, 128> values{};
  for (std::size_t i = 0; i < m.values.size(); ++i) values[i] = static_cast<T>(m.values[i]);
  return values;
}

/// Rows per task such that a task moves at least 64 kB.
std::int64_t row_grain(std::int64_t channels, int elements) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, channels * elements));
}

}  // namespace

#define GYRE_PICK(NAME, SUFFIX, ELEMENTS)           \
  (ELEMENTS == 1   ? GYRE_CHOSEN(NAME##_1_##SUFFIX) \
   : ELEMENTS == 2 ? GYRE_CHOSEN(NAME##_2_##SUFFIX) \
   : ELEMENTS == 4 ? GYRE_CHOSEN(NAME##_4_##SUFFIX) \
                   : GYRE_CHOSEN(NAME##_8_##SUFFIX))

template <class T>
void to_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, const T* x, T* planes) {
  const auto values = constants<T>(m);
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>)
      return GYRE_PICK(to_planes, f32, m.cols);
    else
      return GYRE_PICK(to_planes, f64, m.cols);
  }();
  parallel_for(0, rows, row_grain(channels, m.cols), [&](std::int64_t first, std::int64_t last) {
    run(m.rows, values.data(), first, last, channels, rows * channels, x, planes);
  });
}

template <class T>
void from_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, const T* planes, const T* bias,
                 T* y) {
  const auto values = constants<T>(m);
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>)
      return GYRE_PICK(from_planes, f32, m.rows);
    else
      return GYRE_PICK(from_planes, f64, m.rows);
  }();
  parallel_for(0, rows, row_grain(channels, m.rows), [&](std::int64_t first, std::int64_t last) {
    run(m.cols, values.data(), first, last, channels, rows * channels, planes, bias, y);
  });
}
#undef GYRE_PICK

template void to_planes(const Matrix&, std::int64_t, std::int64_t, const float*, float*);
template void to_planes(const Matrix&, std::int64_t, std::int64_t, const double*, double*);
template void from_planes(const Matrix&, std::int64_t, std::int64_t, const float*, const float*, float*);
template void from_planes(const Matrix&, std::int64_t, std::int64_t, const double*, const double*, double*);

}  // namespace gyre::kernels::cpu
#endif
