#include "kernels/cuda/blas.h"

#include <atomic>

#include "core/cuda/copy.h"
#include "core/profile.h"
#include "kernels/cuda/blas_product.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/epilogue_launch.h"

namespace gyre::kernels::cuda {
namespace {

std::atomic<bool> tf32 = false;

void require_options(DType dtype, const GemmShape& s, const GemmOptions& options) {
  require<DTypeError>(is_floating(dtype), "gemm takes f64, f32, f16 or bf16, not {}", dtype);
  require(s.batch >= 0 && s.m >= 0 && s.n >= 0 && s.k >= 0, "gemm: negative size in {} x {} x {} x {}",
          s.batch, s.m, s.n, s.k);
  require((s.m <= 1 || s.c_row >= s.n) && (s.batch <= 1 || s.c_batch != 0),
          "gemm: rows of {} elements, {} apart, overlap in the result", s.n, s.c_row);
  require(!options.accumulate || (options.bias == nullptr && options.activation == GemmActivation::none),
          "gemm adds to its result or applies bias and activation, not both");
  require(options.pre_activation == nullptr || options.activation != GemmActivation::none,
          "gemm: nothing to keep without an activation");
}

/// A dense copy of an operand that no library takes as it is: neither its rows nor its columns are adjacent.
Tensor unit_stride_copy(Device device, DType dtype, const cpu::StridedMatrices& x, const void*& data,
                        std::int64_t& batch_stride, std::int64_t& row, std::int64_t& col) {
  if (x.has_unit_stride()) return {};
  const Shape shape{batch_stride == 0 ? 1 : x.batch, x.rows, x.cols};
  Tensor copy = Tensor::empty(shape, dtype, device);
  gyre::cuda::strided_copy(device.index, shape, copy.raw_mutable_data(), dtype, copy.strides(), data, dtype,
                           {batch_stride, row, col});
  data = copy.raw_data();
  if (batch_stride != 0) batch_stride = x.rows * x.cols;
  row = x.cols;
  col = 1;
  return copy;
}

void* advance(void* data, std::int64_t bytes) {
  return data == nullptr ? nullptr : static_cast<std::byte*>(data) + bytes;
}

/// c = activation(x + bias), and what the activation is applied to where it is kept.
void run_epilogue(Device device, DType dtype, const GemmShape& s, void* x, void* c,
                  const GemmOptions& options) {
  if (options.bias == nullptr && options.activation == GemmActivation::none) return;
  const bool kept = options.pre_activation == x && options.bias == nullptr;
  // One launch where the batch continues the rows.
  const bool joined = s.batch == 1 || s.c_batch == s.m * s.c_row;
  const std::int64_t launches = joined ? 1 : s.batch, rows = joined ? s.batch * s.m : s.m;
  dispatch(dtype, "gemm", [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < launches; ++i) {
      const std::int64_t offset = i * s.c_batch * static_cast<std::int64_t>(size_of(dtype));
      launch_epilogue<T>(static_cast<EpilogueActivation>(options.activation), rows, s.n, s.c_row,
                         static_cast<const T*>(advance(x, offset)), static_cast<const T*>(options.bias),
                         kept ? nullptr : static_cast<T*>(advance(options.pre_activation, offset)),
                         static_cast<T*>(advance(c, offset)), gyre::cuda::compute_stream(device.index));
    }
  });
}

}  // namespace

void allow_tf32(bool allow) { tf32 = allow; }
bool tf32_allowed() { return tf32; }

void gemm(Device device, DType dtype, const GemmShape& shape, const void* a, const void* b, void* c,
          const GemmOptions& options) {
  const ProfileScope scope("gemm");
  require_options(dtype, shape, options);
  require<DeviceError>(device.is_cuda(), "gemm of CUDA was given memory on {}", device);
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  GemmShape s = cpu::canonical(shape);
  const DType result = options.f32_result && size_of(dtype) == 2 ? DType::f32 : dtype;
  if (s.k == 0) {
    if (options.accumulate) return;
    gyre::cuda::strided_fill(device.index, {s.batch, s.m, s.n}, c, result, {s.c_batch, s.c_row, 1}, 0);
    return run_epilogue(device, result, s, c, c, options);
  }
  const Tensor a_copy = unit_stride_copy(device, dtype, cpu::a_of(s), a, s.a_batch, s.a_row, s.a_col);
  const Tensor b_copy = unit_stride_copy(device, dtype, cpu::b_of(s), b, s.b_batch, s.b_row, s.b_col);
  // The library's GELU is too rough for f32.
  const bool own = options.activation == GemmActivation::gelu ||
                   (options.activation == GemmActivation::gelu_tanh && size_of(result) > 2);
  // What our activation reads is written once: where it is kept, with the bias in it.
  void* const to = own && options.pre_activation != nullptr ? options.pre_activation : c;
  Product product{dtype, result, s, a, b, to, options.alpha, options.accumulate};
  product.bias = options.bias;
  if (!own) {
    product.gelu_tanh = options.activation == GemmActivation::gelu_tanh;
    product.pre_activation = options.pre_activation;
  }
  GemmOptions rest = options;
  if (run_product(device.index, product)) {
    if (!own) return;
    rest.bias = nullptr;
  } else {
    product.bias = product.pre_activation = nullptr;
    product.gelu_tanh = false;
    require<DeviceError>(run_product(device.index, product),
                         "no kernel multiplies {} matrices of {} x {} and {} x {}", dtype, s.m, s.k, s.k,
                         s.n);
  }
  run_epilogue(device, result, s, to, c, rest);
}

}  // namespace gyre::kernels::cuda
