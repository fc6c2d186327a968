#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types with f32 arithmetic;
// H = T, or a 16-bit type beside float. S, of gains, biases and statistics: float, or double for double.

/// An array in T or in H: the other pointer is null, both where there is none.
template <class T, class H>
struct Either {
  T* wide = nullptr;
  H* narrow = nullptr;
};

/// Layer norm of the rows of x [rows, n] or, with r, of sum = x + r, which is written too; n ≥ 1.
template <class T, class H, class S>
struct LayerNormForward {
  const T* x;
  Either<const T, const H> r;
  const S *gain, *bias;  ///< [n / repeat]
  int repeat;
  S eps;
  T* sum;
  Either<T, H> y;
  S *mean, *rstd;  ///< [rows]
  std::int64_t rows, n;
};
template <class T, class H, class S>
void launch_layer_norm_forward(const LayerNormForward<T, H, S>& call, void* stream);

/// Overwrites dx, dgain and dbias; rows may be 0.
template <class T, class H, class S>
struct LayerNormBackward {
  const T* x;  ///< what was normalised
  const S *gain, *mean, *rstd;
  Either<const T, const H> grad;
  const T* outer;  ///< what reached x elsewhere, added to dx; may be null
  int repeat;
  T* dx;
  H* dr;  ///< dx once more, rounded to H ≠ T; may be null
  S *dgain, *dbias;
  S* workspace;
  std::int64_t rows, n;
};
template <class T, class H, class S>
void launch_layer_norm_backward(const LayerNormBackward<T, H, S>& call, void* stream);
/// Elements of S in the workspace.
std::int64_t layer_norm_workspace(std::int64_t rows, std::int64_t n);

}  // namespace gyre::kernels::cuda
