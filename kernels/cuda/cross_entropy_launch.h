#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays [rows, n], neither 0; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types
// with f32 arithmetic. Losses and their gradient are single numbers.

/// labels [rows], in [0, n); target (1 - smoothing)·onehot + smoothing/n. losses [rows]: workspace, of float,
/// or double for double.
template <class T, class S>
void launch_cross_entropy_forward(const T* logits, const std::int64_t* labels, double smoothing, T* loss,
                                  T* probabilities, S* losses, std::int64_t rows, std::int64_t n,
                                  void* stream);
template <class T>
void launch_cross_entropy_backward(const T* probabilities, const std::int64_t* labels, double smoothing,
                                   const T* grad, T* result, std::int64_t rows, std::int64_t n, void* stream);
/// targets [rows, n], any weights.
template <class T, class S>
void launch_cross_entropy_soft_forward(const T* logits, const T* targets, T* loss, T* probabilities,
                                       S* losses, std::int64_t rows, std::int64_t n, void* stream);
template <class T>
void launch_cross_entropy_soft_backward(const T* probabilities, const T* targets, const T* grad, T* result,
                                        std::int64_t rows, std::int64_t n, void* stream);

}  // namespace gyre::kernels::cuda
