#pragma once

#include <string>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/cpu/gemm_shape.h"

// Dense products on CUDA devices: by cuBLASLt, which is opened at the first product, or by Eigen in emulated
// builds.
namespace gyre::kernels::cuda {

using cpu::GemmShape;

/// What follows a product. `gelu` is x·Φ(x); `gelu_tanh` the form by tanh that cuBLASLt has built in, within
/// 5e-4 of it.
enum class GemmActivation { none, gelu, gelu_tanh };

struct GemmOptions {
  double alpha = 1;
  bool accumulate = false;     ///< add to C; not together with what follows
  const void* bias = nullptr;  ///< [n] in the type of C, added to every row
  GemmActivation activation = GemmActivation::none;
  void* pre_activation = nullptr;  ///< beside C, laid out as C: what the activation was applied to
  bool f32_result = false;         ///< C (and what goes with it) in f32 for factors in f16 or bf16
};

/// C = activation(alpha·A·B + bias), or C += alpha·A·B, row-major, on the device's compute stream. f64, f32,
/// f16 or bf16; 16-bit products are summed in f32 and rounded at the end (twice where the epilogue is not the
/// library's). Any strides of A and B: operands without a unit stride are copied first. k = 0 gives zeros or
/// the bias. The same bits for the same arguments; in other processes too where deterministic() is on, else
/// the first of several equal products times what the library proposes. Throws DTypeError, DeviceError or
/// Error.
void gemm(Device device, DType dtype, const GemmShape& shape, const void* a, const void* b, void* c,
          const GemmOptions& options = {});

/// Whether f32 products may round their factors to tf32 (10 bits of fraction). Off unless set; for the
/// process.
void allow_tf32(bool allow);
bool tf32_allowed();

/// "cuBLASLt 13.1.0" (opens the library), or "Eigen 3.4.0, emulated".
std::string blas_version();

}  // namespace gyre::kernels::cuda
