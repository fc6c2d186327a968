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

/// Permutes whole vectors of channels; one call covers Lanes(d) of them.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void repeat_block(D d, const GroupTable& index, const T* x, std::int64_t stride, T* y) {
  hn::Vec<D> v[G], turned[G];
  load_elements<G>(d, x, v);
  for (int t = 0; t < G; ++t) {
    for (int s = 0; s < G; ++s) turned[s] = v[index[t][s]];
    store_elements<G>(d, turned, y + t * stride);
  }
}

template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void sum_block(D d, const GroupTable& index, const T* x, std::int64_t stride, T* y) {
  hn::Vec<D> v[G], sums[G];
  for (int s = 0; s < G; ++s) sums[s] = hn::Zero(d);
  for (int t = 0; t < G; ++t) {
    load_elements<G>(d, x + t * stride, v);
    for (int s = 0; s < G; ++s) sums[s] = hn::Add(sums[s], v[index[t][s]]);
  }
  store_elements<G>(d, sums, y);
}

template <int G, class T>
void repeat_rows(const GroupTable& index, std::int64_t first, std::int64_t last, std::int64_t channels,
                 std::int64_t row, std::int64_t element, const T* x, T* y) {
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 4> narrow;
  const auto most = static_cast<std::int64_t>(hn::Lanes(wide)),
             few = static_cast<std::int64_t>(hn::Lanes(narrow));
  for (std::int64_t n = first; n < last; ++n) {
    const T* in = x + n * channels * G;
    T* out = y + n * row;
    std::int64_t c = 0;
    for (; c + most <= channels; c += most) repeat_block<G>(wide, index, in + c * G, element, out + c * G);
    for (; c + few <= channels; c += few) repeat_block<G>(narrow, index, in + c * G, element, out + c * G);
    for (; c < channels; ++c)
      for (int t = 0; t < G; ++t)
        for (int s = 0; s < G; ++s) out[t * element + c * G + s] = in[c * G + index[t][s]];
  }
}

template <int G, class T>
void sum_rows(const GroupTable& index, std::int64_t first, std::int64_t last, std::int64_t channels,
              const T* x, T* y) {
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 4> narrow;
  const auto most = static_cast<std::int64_t>(hn::Lanes(wide)),
             few = static_cast<std::int64_t>(hn::Lanes(narrow));
  const std::int64_t row = channels * G;
  for (std::int64_t n = first; n < last; ++n) {
    const T* in = x + n * G * row;
    T* out = y + n * row;
    std::int64_t c = 0;
    for (; c + most <= channels; c += most) sum_block<G>(wide, index, in + c * G, row, out + c * G);
    for (; c + few <= channels; c += few) sum_block<G>(narrow, index, in + c * G, row, out + c * G);
    for (; c < channels; ++c)
      for (int s = 0; s < G; ++s) {
        T sum = 0;
        for (int t = 0; t < G; ++t) sum += in[t * row + c * G + index[t][s]];
        out[c * G + s] = sum;
      }
  }
}

#define GYRE_PERMUTE(G, T, SUFFIX)                                                                         \
  void repeat_##SUFFIX(const GroupTable& index, std::int64_t first, std::int64_t last,                     \
                       std::int64_t channels, std::int64_t row, std::int64_t element, const T* x, T* y) {  \
    repeat_rows<G, T>(index, first, last, channels, row, element, x, y);                                   \
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

#define GYRE_EXPORT_ORDER(SUFFIX) \
  HWY_EXPORT(repeat_##SUFFIX);    \
  HWY_EXPORT(sum_##SUFFIX);
GYRE_EXPORT_ORDER(1_f32)
GYRE_EXPORT_ORDER(2_f32)
GYRE_EXPORT_ORDER(4_f32)
GYRE_EXPORT_ORDER(8_f32)
GYRE_EXPORT_ORDER(1_f64)
GYRE_EXPORT_ORDER(2_f64)
GYRE_EXPORT_ORDER(4_f64)
GYRE_EXPORT_ORDER(8_f64)
#undef GYRE_EXPORT_ORDER

/// Rows per task such that a task moves at least 64 kB.
std::int64_t row_grain(std::int64_t channels, int order) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, channels * order * order));
}

}  // namespace

GroupTable group_table(const Group& group, bool inverse) {
  GroupTable table{};
  for (int t = 0; t < group.order(); ++t)
    for (int s = 0; s < group.order(); ++s) table[t][s] = group.mul(inverse ? group.inv(t) : t, s);
  return table;
}

#define GYRE_PICK(NAME, SUFFIX, ORDER)           \
  (ORDER == 1   ? GYRE_CHOSEN(NAME##_1_##SUFFIX) \
   : ORDER == 2 ? GYRE_CHOSEN(NAME##_2_##SUFFIX) \
   : ORDER == 4 ? GYRE_CHOSEN(NAME##_4_##SUFFIX) \
                : GYRE_CHOSEN(NAME##_8_##SUFFIX))

template <class T>
void repeat_permuted(int order, const GroupTable& index, std::int64_t rows, std::int64_t channels,
                     std::int64_t row, std::int64_t element, const T* x, T* y) {
  const auto run = [&] {
    if constexpr (std::is_same_v<T, float>)
      return GYRE_PICK(repeat, f32, order);
    else
      return GYRE_PICK(repeat, f64, order);
  }();
  parallel_for(0, rows, row_grain(channels, order), [&](std::int64_t first, std::int64_t last) {
    run(index, first, last, channels, row, element, x, y);
  });
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

template void repeat_permuted(int, const GroupTable&, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                              const float*, float*);
template void repeat_permuted(int, const GroupTable&, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                              const double*, double*);
template void sum_permuted(int, const GroupTable&, std::int64_t, std::int64_t, const float*, float*);
template void sum_permuted(int, const GroupTable&, std::int64_t, std::int64_t, const double*, double*);

}  // namespace gyre::kernels::cpu
#endif
