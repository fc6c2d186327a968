#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Attention in blocks of queries and keys, without the matrix of scores: the forward keeps the logarithm of
// each row's sum of exponentials, from which the backward computes the probabilities anew (FlashAttention,
// arXiv 2205.14135). T = float, double, prim::half_t or prim::bf16_t, the 16-bit types with f32 arithmetic;
// S: float, or double for double. Dense device arrays; no extent is 0.

/// Widest head, in f64 or in any other type.
constexpr int max_head_width(bool f64) { return f64 ? 128 : 256; }

template <class T, class S>
struct AttentionInput {
  std::int64_t images, length, heads, width;
  const T* qkv;             ///< [images, length, 3, heads, width]
  const S* bias = nullptr;  ///< [heads, length, length], added to the scores
  const S* mask = nullptr;  ///< [windows, length, length], added to those of image b mod windows
  std::int64_t windows = 1;
};
/// y [images, length, heads·width]; logarithms [images, heads, length], or null.
template <class T, class S>
void launch_attention_forward(const AttentionInput<T, S>& input, T* y, S* logarithms, void* stream);

template <class T, class S>
struct AttentionBackward {
  const T* y;           ///< of the forward
  const S* logarithms;  ///< of the forward
  const T* grad;        ///< of y
  T* result;            ///< gradient of qkv
  S* bias_gradient;     ///< of the bias, overwritten; or null
};
/// Elements of S that the backward needs beside its arguments.
std::int64_t attention_workspace(std::int64_t images, std::int64_t length, std::int64_t heads,
                                 bool bias_gradient);
template <class T, class S>
void launch_attention_backward(const AttentionInput<T, S>& input, const AttentionBackward<T, S>& backward,
                               S* workspace, void* stream);

}  // namespace gyre::kernels::cuda
