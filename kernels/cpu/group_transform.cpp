#include "kernels/cpu/group_transform.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/group_transform.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Deinterleaves `Lanes` channels of G group elements: v[t] holds element t of each channel.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void load_elements(D d, const T* x, hn::Vec<D>* v) {
  if constexpr (G == 1) {
    v[0] = hn::LoadU(d, x);
  } else if constexpr (G == 2) {
    hn::LoadInterleaved2(d, x, v[0], v[1]);
  } else if constexpr (G == 4) {
    hn::LoadInterleaved4(d, x, v[0], v[1], v[2], v[3]);
  } else {
    // Quads 0..3 and 4..7 of each channel, each quad then as for G = 4.
    HWY_ALIGN T low[4 * HWY_MAX_BYTES / sizeof(T)], high[4 * HWY_MAX_BYTES / sizeof(T)];
    for (std::size_t c = 0; c < hn::Lanes(d); ++c) {
      std::memcpy(low + 4 * c, x + 8 * c, 4 * sizeof(T));
      std::memcpy(high + 4 * c, x + 8 * c + 4, 4 * sizeof(T));
    }
    hn::LoadInterleaved4(d, low, v[0], v[1], v[2], v[3]);
    hn::LoadInterleaved4(d, high, v[4], v[5], v[6], v[7]);
  }
}

/// Inverse of load_elements.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_elements(D d, const hn::Vec<D>* v, T* y) {
  if constexpr (G == 1) {
    hn::StoreU(v[0], d, y);
  } else if constexpr (G == 2) {
    hn::StoreInterleaved2(v[0], v[1], d, y);
  } else if constexpr (G == 4) {
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, y);
  } else {
    HWY_ALIGN T low[4 * HWY_MAX_BYTES / sizeof(T)], high[4 * HWY_MAX_BYTES / sizeof(T)];
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, low);
    hn::StoreInterleaved4(v[4], v[5], v[6], v[7], d, high);
    for (std::size_t c = 0; c < hn::Lanes(d); ++c) {
      std::memcpy(y + 8 * c, low + 4 * c, 4 * sizeof(T));
      std::memcpy(y + 8 * c + 4, high + 4 * c, 4 * sizeof(T));
    }
  }
}

template <int G, class T>
void to_planes_rows(int products, const T* m, std::int64_t first, std::int64_t last, std::int64_t channels,
                    std::int64_t plane, const T* x, T* planes) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = channels / lanes * lanes;
  for (std::int64_t n = first; n < last; ++n) {
    const T* row = x + n * channels * G;
    T* out = planes + n * channels;
    for (std::int64_t c = 0; c < whole; c += lanes) {
      hn::Vec<decltype(d)> v[G];
      load_elements<G>(d, row + c * G, v);
      for (int p = 0; p < products; ++p) {
        auto sum = hn::Mul(hn::Set(d, m[p * G]), v[0]);
        for (int t = 1; t < G; ++t) sum = hn::MulAdd(hn::Set(d, m[p * G + t]), v[t], sum);
        hn::StoreU(sum, d, out + p * plane + c);
      }
    }
    for (std::int64_t c = whole; c < channels; ++c) {
      for (int p = 0; p < products; ++p) {
        T sum = 0;
        for (int t = 0; t < G; ++t) sum += m[p * G + t] * row[c * G + t];
        out[p * plane + c] = sum;
      }
    }
  }
}

template <int G, class T>
void from_planes_rows(int products, const T* m, std::int64_t first, std::int64_t last, std::int64_t channels,
                      std::int64_t plane, const T* planes, const T* bias, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = channels / lanes * lanes;
  for (std::int64_t n = first; n < last; ++n) {
    const T* in = planes + n * channels;
    T* row = y + n * channels * G;
    for (std::int64_t c = 0; c < whole; c += lanes) {
      hn::Vec<decltype(d)> v[G];
      const auto start = bias ? hn::LoadU(d, bias + c) : hn::Zero(d);
      for (int t = 0; t < G; ++t) v[t] = start;
      for (int p = 0; p < products; ++p) {
        const auto a = hn::LoadU(d, in + p * plane + c);
        for (int t = 0; t < G; ++t) v[t] = hn::MulAdd(hn::Set(d, m[t * products + p]), a, v[t]);
      }
      store_elements<G>(d, v, row + c * G);
    }
    for (std::int64_t c = whole; c < channels; ++c) {
      for (int t = 0; t < G; ++t) {
        T sum = bias ? bias[c] : T(0);
        for (int p = 0; p < products; ++p) sum += m[t * products + p] * in[p * plane + c];
        row[c * G + t] = sum;
      }
    }
  }
}

#define GYRE_TRANSFORM(G, T, SUFFIX)                                                                                  \
  void to_planes_##SUFFIX(int products, const T* m, std::int64_t first, std::int64_t last, std::int64_t channels,    \
                          std::int64_t plane, const T* x, T* planes) {                                               \
    to_planes_rows<G, T>(products, m, first, last, channels, plane, x, planes);                                      \
  }                                                                                                                  \
  void from_planes_##SUFFIX(int products, const T* m, std::int64_t first, std::int64_t last, std::int64_t channels,  \
                            std::int64_t plane, const T* planes, const T* bias, T* y) {                              \
    from_planes_rows<G, T>(products, m, first, last, channels, plane, planes, bias, y);                              \
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

#define GYRE_EXPORT(SUFFIX)             \
  HWY_EXPORT(to_planes_##SUFFIX);       \
  HWY_EXPORT(from_planes_##SUFFIX);
GYRE_EXPORT(1_f32)
GYRE_EXPORT(2_f32)
GYRE_EXPORT(4_f32)
GYRE_EXPORT(8_f32)
GYRE_EXPORT(1_f64)
GYRE_EXPORT(2_f64)
GYRE_EXPORT(4_f64)
GYRE_EXPORT(8_f64)
#undef GYRE_EXPORT

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

#define GYRE_PICK(NAME, SUFFIX, ELEMENTS)                                                                           \
  (ELEMENTS == 1   ? HWY_DYNAMIC_DISPATCH(NAME##_1_##SUFFIX)                                                         \
   : ELEMENTS == 2 ? HWY_DYNAMIC_DISPATCH(NAME##_2_##SUFFIX)                                                         \
   : ELEMENTS == 4 ? HWY_DYNAMIC_DISPATCH(NAME##_4_##SUFFIX)                                                         \
                   : HWY_DYNAMIC_DISPATCH(NAME##_8_##SUFFIX))

template <class T>
void to_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, const T* x, T* planes) {
  const auto values = constants<T>(m);
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>) return GYRE_PICK(to_planes, f32, m.cols);
    else return GYRE_PICK(to_planes, f64, m.cols);
  }();
  parallel_for(0, rows, row_grain(channels, m.cols), [&](std::int64_t first, std::int64_t last) {
    run(m.rows, values.data(), first, last, channels, rows * channels, x, planes);
  });
}

template <class T>
void from_planes(const Matrix& m, std::int64_t rows, std::int64_t channels, const T* planes, const T* bias, T* y) {
  const auto values = constants<T>(m);
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>) return GYRE_PICK(from_planes, f32, m.rows);
    else return GYRE_PICK(from_planes, f64, m.rows);
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
