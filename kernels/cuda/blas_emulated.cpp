#include <cmath>
#include <numbers>
#include <vector>

#include "core/copy.h"
#include "core/half.h"
#include "kernels/cpu/eigen_gemm.h"
#include "kernels/cuda/blas_product.h"

// The products of cuBLASLt on memory of the emulator, by Eigen: sums in f32 (f64 for f64), one rounding at
// the end.
namespace gyre::kernels::cuda {
namespace {

/// An operand in the type of the sums, dense; a matrix that the batch shares once.
template <class Sum>
std::vector<Sum> widened(const cpu::StridedMatrices& x, DType dtype, const void* data) {
  std::vector<Sum> dense(static_cast<std::size_t>(x.count()));
  const Shape shape{x.batch_stride == 0 ? 1 : x.batch, x.rows, x.cols};
  detail::strided_copy(shape, dense.data(), dtype_of<Sum>(), shape.dense_strides(), data, dtype,
                       {x.batch_stride, x.row, x.col});
  return dense;
}

/// To the nearest number of 10 bits of fraction, ties away from zero.
void round_to_tf32(std::vector<float>& values) {
  for (float& value : values) {
    if (std::isfinite(value))
      value = std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & ~0x1FFFU);
  }
}

template <class Sum>
Sum gelu_by_tanh(Sum x) {
  const Sum scale = std::numbers::inv_sqrtpi_v<Sum> * std::numbers::sqrt2_v<Sum>;
  return Sum(0.5) * x * (Sum(1) + std::tanh(scale * (x + Sum(0.044715) * x * x * x)));
}

template <class T, class Sum>
T narrow(Sum value) {
  if constexpr (std::is_same_v<T, Sum>)
    return value;
  else
    return T::nearest(value);
}

/// One element of type T.
template <class T, class Sum>
void finish(const Product& p, Sum sum, std::int64_t column, std::int64_t at) {
  T* const c = static_cast<T*>(p.c) + at;
  Sum value = static_cast<Sum>(p.alpha) * sum;
  if (p.accumulate) value += static_cast<Sum>(*c);
  if (p.bias != nullptr) value += static_cast<Sum>(static_cast<const T*>(p.bias)[column]);
  if (p.pre_activation != nullptr) static_cast<T*>(p.pre_activation)[at] = narrow<T>(value);
  *c = narrow<T>(p.gelu_tanh ? gelu_by_tanh(value) : value);
}

template <class T, class Sum>
void run(const Product& p) {
  const GemmShape& s = p.shape;
  std::vector<Sum> a = widened<Sum>(cpu::a_of(s), p.dtype, p.a), b = widened<Sum>(cpu::b_of(s), p.dtype, p.b);
  if constexpr (std::is_same_v<Sum, float>) {
    if (p.dtype == DType::f32 && tf32_allowed()) {
      round_to_tf32(a);
      round_to_tf32(b);
    }
  }
  GemmShape dense = s;
  dense.a_batch = s.a_batch == 0 ? 0 : s.m * s.k;
  dense.b_batch = s.b_batch == 0 ? 0 : s.k * s.n;
  dense.c_batch = s.m * s.n;
  dense.a_row = s.k;
  dense.b_row = dense.c_row = s.n;
  dense.a_col = dense.b_col = 1;
  std::vector<Sum> sums(static_cast<std::size_t>(s.batch * s.m * s.n));
  cpu::eigen_gemm<Sum>(dense, a.data(), b.data(), sums.data(), false, nullptr);
  const Sum* sum = sums.data();
  for (std::int64_t i = 0; i < s.batch; ++i) {
    for (std::int64_t r = 0; r < s.m; ++r) {
      for (std::int64_t j = 0; j < s.n; ++j) finish<T>(p, *sum++, j, i * s.c_batch + r * s.c_row + j);
    }
  }
}

}  // namespace

bool run_product(int, const Product& p) {
  // cuBLASLt refuses such epilogues too.
  if (p.has_epilogue() && (p.result == DType::f64 || (p.pre_activation != nullptr && p.shape.n % 8 != 0)))
    return false;
  switch (p.result) {
    case DType::f64: run<double, double>(p); break;
    case DType::f32: run<float, float>(p); break;
    case DType::f16: run<Half, float>(p); break;
    default: run<BFloat16, float>(p); break;
  }
  return true;
}

std::string blas_version() { return fmt::format("{}, emulated", cpu::eigen_version()); }

}  // namespace gyre::kernels::cuda
