#include "kernels/cpu/group_permute.h"

#include <algorithm>
#include <type_traits>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/group_permute.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int G, class T>
void repeat_rows(const GroupTable& index, std::int64_t first, std::int64_t last, std::int64_t channels,
                 const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t n = first; n < last; ++n)
    for (std::int64_t c = 0; c < channels; c += lanes) {
      hn::Vec<decltype(d)> v[G], turned[G];
      load_some_elements<G>(d, x + (n * channels + c) * G, channels - c, v);
      for (int t = 0; t < G; ++t) {
        for (int s = 0; s < G; ++s) turned[s] = v[index[t][s]];
        store_some_elements<G>(d, turned, channels - c, y + ((n * G + t) * channels + c) * G);
      }
    }
}

template <int G, class T>
void sum_rows(const GroupTable& index, std::int64_t first, std::int64_t last, std::int64_t channels,
              const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t n = first; n < last; ++n)
    for (std::int64_t c = 0; c < channels; c += lanes) {
      hn::Vec<decltype(d)> v[G], sums[G];
      for (int s = 0; s < G; ++s) sums[s] = hn::Zero(d);
      for (int t = 0; t < G; ++t) {
        load_some_elements<G>(d, x + ((n * G + t) * channels + c) * G, channels - c, v);
        for (int s = 0; s < G; ++s) sums[s] = hn::Add(sums[s], v[index[t][s]]);
      }
      store_some_elements<G>(d, sums, channels - c, y + (n * channels + c) * G);
    }
}

#define GYRE_PERMUTE(G, T, SUFFIX)                                                                         \
  void repeat_##SUFFIX(const GroupTable& index, std::int64_t first, std::int64_t last,                     \
                       std::int64_t channels, const T* x, T* y) {                                          \
    repeat_rows<G, T>(index, first, last, channels, x, y);                                                 \
  }                                                                                                        \
  void sum_##SUFFIX(const GroupTable& index, std::int64_t first, std::int64_t last, std::int64_t channels, \
                    const T* x, T* y) {                                                                    \
    sum_rows<G, T>(index, first, last, channels, x, y);                                                    \
  }
GYRE_PERMUTE(1, float, 1_f32)
GYRE_PERMUTE(2, float, 2_f32)
GYRE_PERMUTE(4, float, 4_f32)
GYRE_PERMUTE(8, float, 8_f32)
GYRE_PERMUTE(1, double, 1_f64)
GYRE_PERMUTE(2, double, 2_f64)
GYRE_PERMUTE(4, double, 4_f64)
GYRE_PERMUTE(8, double, 8_f64)
#undef GYRE_PERMUTE

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

#define GYRE_EXPORT(SUFFIX)    \
  HWY_EXPORT(repeat_##SUFFIX); \
  HWY_EXPORT(sum_##SUFFIX);
GYRE_EXPORT(1_f32)
GYRE_EXPORT(2_f32)
GYRE_EXPORT(4_f32)
GYRE_EXPORT(8_f32)
GYRE_EXPORT(1_f64)
GYRE_EXPORT(2_f64)
GYRE_EXPORT(4_f64)
GYRE_EXPORT(8_f64)
#undef GYRE_EXPORT

/// Rows per task such that a task moves at least 64 kB.
std::int64_t row_grain(std::int64_t channels, int order) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, channels * order * order));
}

}  // namespace

#define GYRE_PICK(NAME, SUFFIX, ORDER)           \
  (ORDER == 1   ? GYRE_CHOSEN(NAME##_1_##SUFFIX) \
   : ORDER == 2 ? GYRE_CHOSEN(NAME##_2_##SUFFIX) \
   : ORDER == 4 ? GYRE_CHOSEN(NAME##_4_##SUFFIX) \
                : GYRE_CHOSEN(NAME##_8_##SUFFIX))

template <class T>
void repeat_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels, const T* x,
                     T* y) {
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>)
      return GYRE_PICK(repeat, f32, order);
    else
      return GYRE_PICK(repeat, f64, order);
  }();
  parallel_for(0, rows, row_grain(channels, order),
               [&](std::int64_t first, std::int64_t last) { run(index, first, last, channels, x, y); });
}

template <class T>
void sum_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels, const T* x,
                  T* y) {
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>)
      return GYRE_PICK(sum, f32, order);
    else
      return GYRE_PICK(sum, f64, order);
  }();
  parallel_for(0, rows, row_grain(channels, order),
               [&](std::int64_t first, std::int64_t last) { run(index, first, last, channels, x, y); });
}
#undef GYRE_PICK

template void repeat_permuted(int, const GroupTable&, std::int64_t, std::int64_t, const float*, float*);
template void repeat_permuted(int, const GroupTable&, std::int64_t, std::int64_t, const double*, double*);
template void sum_permuted(int, const GroupTable&, std::int64_t, std::int64_t, const float*, float*);
template void sum_permuted(int, const GroupTable&, std::int64_t, std::int64_t, const double*, double*);

}  // namespace gyre::kernels::cpu
#endif
