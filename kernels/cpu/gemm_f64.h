#pragma once

#include "kernels/cpu/gemm_shape.h"

namespace gyre::kernels::cpu {

/// gemm_f32 in double precision, parallel over the batch and blocks of rows, the same for every thread count;
/// for tests and verification.
void gemm_f64(const GemmShape& shape, const double* a, const double* b, double* c, bool accumulate = false,
              const double* bias = nullptr);

}  // namespace gyre::kernels::cpu
