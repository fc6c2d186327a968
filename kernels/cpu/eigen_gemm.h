#pragma once

#include <string>

#include "kernels/cpu/gemm_shape.h"

namespace gyre::kernels::cpu {

/// C = A·B, or C += A·B if `accumulate`, by Eigen; `bias` [n] or null is added to every row. f32 or f64, any
/// strides, parallel over the batch and blocks of rows, the same for every thread count.
template <class T>
void eigen_gemm(const GemmShape& shape, const T* a, const T* b, T* c, bool accumulate, const T* bias);

/// "Eigen 3.4.0".
std::string eigen_version();

}  // namespace gyre::kernels::cpu
