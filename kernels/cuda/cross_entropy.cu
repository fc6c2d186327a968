#include "kernels/cuda/cross_entropy_launch.h"

#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

/// Loss of one row by its label; x is relative to the maximum of the row.
template <class T>
struct LabelLoss {
  const std::int64_t* labels;
  Wide<T> smoothing;

  /// Added over the row.
  GYRE_DEVICE Wide<T> term(std::int64_t row, int, int column, Wide<T> x, Wide<T> logarithm) const {
    const bool hit = labels[row] == column;
    // Without smoothing an infinite logit of another class must not count.
    if (smoothing == Wide<T>(0)) return hit ? logarithm - x : Wide<T>(0);
    return hit ? (Wide<T>(1) - smoothing) * (logarithm - x) : Wide<T>(0);
  }
  /// Added over the row and divided by its length.
  GYRE_DEVICE Wide<T> mean_term(Wide<T> x, Wide<T> logarithm) const {
    return smoothing == Wide<T>(0) ? Wide<T>(0) : smoothing * (logarithm - x);
  }
};

/// Loss of one row by its targets.
template <class T>
struct TargetLoss {
  const T* targets;

  GYRE_DEVICE Wide<T> term(std::int64_t row, int n, int column, Wide<T> x, Wide<T> logarithm) const {
    return prim::widen(targets[row * n + column]) * (logarithm - x);
  }
  GYRE_DEVICE Wide<T> mean_term(Wide<T>, Wide<T>) const { return 0; }
};

/// Softmax and loss of each row.
template <class T, bool WholeBlock, class Loss>
GYRE_KERNEL(team_block, 2)
forward_kernel(Loss loss, const T* logits, T* probabilities, Wide<T>* losses, std::int64_t rows, int n) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, scratch);
  const std::int64_t row = Row::row();
  if (row >= rows) return;
  const T* const x = logits + row * n;
  const int first = Row::rank(), step = Row::size();
  C most = negative_infinity<C>();
  for (int i = first; i < n; i += step) most = prim::Max()(prim::widen(x[i]), most);
  most = Row::max(most, scratch);
  C sum = 0;
  for (int i = first; i < n; i += step) sum += exp_of(prim::widen(x[i]) - most);
  sum = Row::sum(sum, scratch);
  const C factor = C(1) / sum, logarithm = log_of(sum);
  C total = 0, mean_total = 0;
  for (int i = first; i < n; i += step) {
    const C centred = prim::widen(x[i]) - most;
    total += loss.term(row, n, i, centred, logarithm);
    mean_total += loss.mean_term(centred, logarithm);
    probabilities[row * n + i] = prim::from_float<T>(exp_of(centred) * factor);
  }
  total = Row::sum(total + mean_total / static_cast<C>(n), scratch);
  if (Row::rank() == 0) losses[row] = total;
}

/// The mean of the losses, in f64 and in a fixed order; one block.
template <class T>
GYRE_KERNEL(team_block)
mean_kernel(const Wide<T>* losses, T* loss, std::int64_t rows) {
  GYRE_SHARED(double, scratch);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += team_block) sum += static_cast<double>(losses[i]);
  sum = prim::block_sum(sum, scratch);
  if (threadIdx.x == 0) *loss = prim::from_float<T>(static_cast<Wide<T>>(sum / static_cast<double>(rows)));
}

template <class T>
GYRE_KERNEL(team_block)
label_backward_kernel(const T* probabilities, const std::int64_t* labels, Wide<T> smoothing, const T* grad,
                      T* result, std::int64_t rows, int n) {
  using C = Wide<T>;
  const C scale = prim::widen(*grad) / static_cast<C>(rows), other = smoothing / static_cast<C>(n);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t label = labels[row];
    for (int i = static_cast<int>(threadIdx.x); i < n; i += team_block) {
      const C hit = i == label ? C(1) - smoothing : C(0);
      result[row * n + i] =
          prim::from_float<T>(scale * (prim::widen(probabilities[row * n + i]) - other - hit));
    }
  }
}

template <class T, bool WholeBlock>
GYRE_KERNEL(team_block)
soft_backward_kernel(const T* probabilities, const T* targets, const T* grad, T* result, std::int64_t rows,
                     int n) {
  using C = Wide<T>;
  using Row = Team<WholeBlock>;
  GYRE_SHARED(C, scratch);
  const std::int64_t row = Row::row();
  if (row >= rows) return;
  const C scale = prim::widen(*grad) / static_cast<C>(rows);
  const T *const p = probabilities + row * n, *const t = targets + row * n;
  C weight = 0;
  for (int i = Row::rank(); i < n; i += Row::size()) weight += prim::widen(t[i]);
  weight = Row::sum(weight, scratch);
  for (int i = Row::rank(); i < n; i += Row::size())
    result[row * n + i] = prim::from_float<T>(scale * (prim::widen(p[i]) * weight - prim::widen(t[i])));
}

template <class T, class Loss>
void forward(Loss row_loss, const T* logits, T* loss, T* probabilities, Wide<T>* losses, std::int64_t rows,
             std::int64_t n, void* stream) {
  with_team<T>(false, n, [&](auto, auto whole) {
    GYRE_LAUNCH((forward_kernel<T, whole, Loss>), prim::Grid{team_blocks(whole, rows)}, team_block,
                team_scratch * sizeof(Wide<T>), stream, row_loss, logits, probabilities, losses, rows,
                static_cast<int>(n));
  });
  GYRE_LAUNCH(mean_kernel<T>, prim::Grid{1}, team_block, team_scratch * sizeof(double), stream, losses, loss,
              rows);
}

}  // namespace

template <class T, class S>
void launch_cross_entropy_forward(const T* logits, const std::int64_t* labels, double smoothing, T* loss,
                                  T* probabilities, S* losses, std::int64_t rows, std::int64_t n,
                                  void* stream) {
  forward(LabelLoss<T>{labels, static_cast<Wide<T>>(smoothing)}, logits, loss, probabilities, losses, rows, n,
          stream);
}

template <class T>
void launch_cross_entropy_backward(const T* probabilities, const std::int64_t* labels, double smoothing,
                                   const T* grad, T* result, std::int64_t rows, std::int64_t n,
                                   void* stream) {
  constexpr std::int64_t most_blocks = 65536;
  GYRE_LAUNCH(label_backward_kernel<T>, prim::Grid{rows < most_blocks ? rows : most_blocks}, team_block, 0,
              stream, probabilities, labels, static_cast<Wide<T>>(smoothing), grad, result, rows,
              static_cast<int>(n));
}

template <class T, class S>
void launch_cross_entropy_soft_forward(const T* logits, const T* targets, T* loss, T* probabilities,
                                       S* losses, std::int64_t rows, std::int64_t n, void* stream) {
  forward(TargetLoss<T>{targets}, logits, loss, probabilities, losses, rows, n, stream);
}

template <class T>
void launch_cross_entropy_soft_backward(const T* probabilities, const T* targets, const T* grad, T* result,
                                        std::int64_t rows, std::int64_t n, void* stream) {
  with_team<T>(false, n, [&](auto, auto whole) {
    GYRE_LAUNCH((soft_backward_kernel<T, whole>), prim::Grid{team_blocks(whole, rows)}, team_block,
                team_scratch * sizeof(Wide<T>), stream, probabilities, targets, grad, result, rows,
                static_cast<int>(n));
  });
}

#define GYRE_INSTANTIATE(T)                                                                           \
  template void launch_cross_entropy_forward(const T*, const std::int64_t*, double, T*, T*, Wide<T>*, \
                                             std::int64_t, std::int64_t, void*);                      \
  template void launch_cross_entropy_backward(const T*, const std::int64_t*, double, const T*, T*,    \
                                              std::int64_t, std::int64_t, void*);                     \
  template void launch_cross_entropy_soft_forward(const T*, const T*, T*, T*, Wide<T>*, std::int64_t, \
                                                  std::int64_t, void*);                               \
  template void launch_cross_entropy_soft_backward(const T*, const T*, const T*, T*, std::int64_t,    \
                                                   std::int64_t, void*);
GYRE_INSTANTIATE(float)
GYRE_INSTANTIATE(double)
GYRE_INSTANTIATE(prim::half_t)
GYRE_INSTANTIATE(prim::bf16_t)
#undef GYRE_INSTANTIATE

}  // namespace gyre::kernels::cuda
