#pragma once

#include "kernels/cpu/eigen_gemm.h"

namespace gyre::kernels::cpu {

/// gemm_f32 in double precision; for tests and verification.
inline void gemm_f64(const GemmShape& shape, const double* a, const double* b, double* c,
                     bool accumulate = false, const double* bias = nullptr) {
  eigen_gemm(shape, a, b, c, accumulate, bias);
}

}  // namespace gyre::kernels::cpu
