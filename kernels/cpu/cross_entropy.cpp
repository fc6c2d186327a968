#include "kernels/cpu/cross_entropy.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

/// probabilities = softmax(x) per row; maximum and logarithm are m and log Σ e^(x - m).
template <class T>
HWY_INLINE void softmax_rows(const T* x, T* probabilities, T* maximum, double* logarithm, std::int64_t rows,
                             std::int64_t n) {
  const hn::ScalableTag<T> d;
  for (std::int64_t r = 0; r < rows; ++r, x += n, probabilities += n) {
    const SoftmaxRow<T> row = exponentiate_row(d, x, probabilities, n);
    scale_row(d, T(1) / row.sum, probabilities, n);
    maximum[r] = row.maximum;
    logarithm[r] = std::log(static_cast<double>(row.sum));
  }
}

#define GYRE_DEFINE(T, SUFFIX)                                                                          \
  void softmax_##SUFFIX(const T* x, T* probabilities, T* maximum, double* logarithm, std::int64_t rows, \
                        std::int64_t n) {                                                               \
    softmax_rows(x, probabilities, maximum, logarithm, rows, n);                                        \
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

GYRE_EXPORT(softmax);

std::int64_t row_grain(std::int64_t k) { return std::max<std::int64_t>(1, 4096 / k); }

/// Softmax of all rows; the loss is the mean of row_loss(i, x row, maximum, log Σ e^(x - maximum)), added in
/// row order.
template <class T, class F>
void forward(const Tensor& logits, Tensor& loss, Tensor& probabilities, F row_loss) {
  const std::int64_t rows = logits.size(0), k = logits.size(1);
  const auto run = GYRE_DISPATCH(softmax, T);
  const T* x = logits.data<T>();
  T* p = probabilities.mutable_data<T>();
  std::vector<T> maximum(static_cast<std::size_t>(rows));
  std::vector<double> losses(static_cast<std::size_t>(rows));
  parallel_for(0, rows, row_grain(k), [&](std::int64_t first, std::int64_t last) {
    run(x + first * k, p + first * k, maximum.data() + first, losses.data() + first, last - first, k);
    for (std::int64_t i = first; i < last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      losses[at] = row_loss(i, x + i * k, static_cast<double>(maximum[at]), losses[at]);
    }
  });
  double total = 0;
  for (const double row : losses) total += row;
  *loss.mutable_data<T>() = static_cast<T>(total / static_cast<double>(rows));
}

}  // namespace

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, double smoothing, Tensor& loss,
                           Tensor& probabilities) {
  const std::int64_t k = logits.size(1);
  const auto* label = labels.data<std::int64_t>();
  dispatch_floating(logits.dtype(), "cross_entropy_forward", [&]<class T>(T) {
    forward<T>(logits, loss, probabilities,
               [&](std::int64_t i, const T* x, double maximum, double logarithm) {
                 const double hit = logarithm - (static_cast<double>(x[label[i]]) - maximum);
                 // Without smoothing an infinite logit of another class must not count.
                 if (smoothing == 0) return hit;
                 double sum = 0;
                 for (std::int64_t j = 0; j < k; ++j) sum += static_cast<double>(x[j]) - maximum;
                 return (1 - smoothing) * hit + smoothing * (logarithm - sum / static_cast<double>(k));
               });
  });
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing,
                            const Tensor& grad, Tensor& result) {
  const std::int64_t rows = probabilities.size(0), k = probabilities.size(1);
  const auto* label = labels.data<std::int64_t>();
  dispatch_floating(result.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    const T scale = *grad.data<T>() / static_cast<T>(rows);
    const T other = static_cast<T>(smoothing / static_cast<double>(k)), hit = static_cast<T>(1 - smoothing);
    const T* p = probabilities.data<T>();
    T* dx = result.mutable_data<T>();
    parallel_for(0, rows, row_grain(k), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t j = first * k; j < last * k; ++j) dx[j] = scale * (p[j] - other);
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t j = i * k + label[i];
        dx[j] = scale * (p[j] - other - hit);
      }
    });
  });
}

void cross_entropy_soft_forward(const Tensor& logits, const Tensor& targets, Tensor& loss,
                                Tensor& probabilities) {
  const std::int64_t k = logits.size(1);
  dispatch_floating(logits.dtype(), "cross_entropy_soft_forward", [&]<class T>(T) {
    const T* target = targets.data<T>();
    forward<T>(
        logits, loss, probabilities, [&](std::int64_t i, const T* x, double maximum, double logarithm) {
          double sum = 0;
          for (std::int64_t j = 0; j < k; ++j)
            sum +=
                static_cast<double>(target[i * k + j]) * (logarithm - (static_cast<double>(x[j]) - maximum));
          return sum;
        });
  });
}

void cross_entropy_soft_backward(const Tensor& probabilities, const Tensor& targets, const Tensor& grad,
                                 Tensor& result) {
  const std::int64_t rows = probabilities.size(0), k = probabilities.size(1);
  dispatch_floating(result.dtype(), "cross_entropy_soft_backward", [&]<class T>(T) {
    const T scale = *grad.data<T>() / static_cast<T>(rows);
    const T *p = probabilities.data<T>(), *t = targets.data<T>();
    T* dx = result.mutable_data<T>();
    parallel_for(0, rows, row_grain(k), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        double weight = 0;
        for (std::int64_t j = i * k; j < (i + 1) * k; ++j) weight += static_cast<double>(t[j]);
        const T w = static_cast<T>(weight);
        for (std::int64_t j = i * k; j < (i + 1) * k; ++j) dx[j] = scale * (p[j] * w - t[j]);
      }
    });
  });
}

}  // namespace gyre::kernels::cpu
#endif
