#include "kernels/cpu/softmax.h"

#include <algorithm>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void softmax_rows(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  const hn::ScalableTag<T> d;
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n)
    scale_row(d, T(1) / exponentiate_row(d, x, y, n).sum, y, n);
}

template <class T>
HWY_INLINE void backward_rows(const T* y, const T* grad, T* result, std::int64_t rows, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  for (std::int64_t r = 0; r < rows; ++r, y += n, grad += n, result += n) {
    auto dot = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) dot = hn::MulAdd(hn::LoadU(d, y + i), hn::LoadU(d, grad + i), dot);
    if (i < n) dot = hn::MulAdd(load_part(d, y + i, n - i), load_part(d, grad + i, n - i), dot);
    dot = hn::SumOfLanes(d, dot);
    for (i = 0; i + lanes <= n; i += lanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, y + i), hn::Sub(hn::LoadU(d, grad + i), dot)), d, result + i);
    if (i < n) {
      const auto rest = hn::Mul(load_part(d, y + i, n - i), hn::Sub(load_part(d, grad + i, n - i), dot));
      store_part(rest, d, result + i, n - i);
    }
  }
}

#define GYRE_DEFINE(T, SUFFIX)                                                                      \
  void forward_##SUFFIX(const T* x, T* y, std::int64_t rows, std::int64_t n) {                      \
    softmax_rows(x, y, rows, n);                                                                    \
  }                                                                                                 \
  void backward_##SUFFIX(const T* y, const T* grad, T* result, std::int64_t rows, std::int64_t n) { \
    backward_rows(y, grad, result, rows, n);                                                        \
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

GYRE_EXPORT(forward);
GYRE_EXPORT(backward);

constexpr std::int64_t grain = 4096;  // elements per task

}  // namespace

void softmax_forward(const Tensor& x, Tensor& y) {
  const std::int64_t n = x.size(-1);
  dispatch_floating(x.dtype(), "softmax_forward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(forward, T);
    const T* px = x.data<T>();
    T* py = y.mutable_data<T>();
    parallel_for(
        0, x.numel() / n, std::max<std::int64_t>(1, grain / n),
        [&](std::int64_t first, std::int64_t last) { run(px + first * n, py + first * n, last - first, n); });
  });
}

void softmax_backward(const Tensor& y, const Tensor& grad, Tensor& result) {
  const std::int64_t n = y.size(-1);
  dispatch_floating(y.dtype(), "softmax_backward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(backward, T);
    const T* py = y.data<T>();
    const T* pg = grad.data<T>();
    T* pr = result.mutable_data<T>();
    parallel_for(0, y.numel() / n, std::max<std::int64_t>(1, grain / n),
                 [&](std::int64_t first, std::int64_t last) {
                   run(py + first * n, pg + first * n, pr + first * n, last - first, n);
                 });
  });
}

}  // namespace gyre::kernels::cpu
#endif
