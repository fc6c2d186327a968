#pragma once

#include <functional>
#include <vector>

#include "kernels/types.h"
#include "tests/cuda/device.h"
#include "tests/kernels/op_test.h"

namespace gyre::kernels {

inline const Device gpu = device_under_test();

/// Why a test is left out when the CPU stands in for the device.
inline constexpr const char* cuda_alone = "CUDA devices alone do this";

using Tensors = std::vector<Tensor>;
/// An operation: its results from its inputs.
using Operation = std::function<Tensors(const Tensors&)>;

/// The floating tensors in `dtype`, the others as they are.
inline Tensors in_type(const Tensors& inputs, DType dtype) {
  Tensors result;
  for (const Tensor& x : inputs) result.push_back(x.defined() && is_floating(x.dtype()) ? x.to(dtype) : x);
  return result;
}

/// Device copies with other strides: 0 dense, 1 the last two dimensions swapped in memory, 2 cut out of NaN.
inline Tensor on_cuda(const Tensor& x, int view) {
  if (!x.defined()) return x;
  const Tensor dense = x.to(gpu);
  if (view == 1 && x.rank() >= 2) return dense.transpose(-1, -2).clone().transpose(-1, -2);
  if (view != 2 || x.rank() == 0) return dense;
  Shape larger = x.shape();
  for (int dim = 0; dim < x.rank(); ++dim) larger[dim] = 2 * larger[dim] + 1;
  Tensor cut = Tensor::full(larger, is_floating(x.dtype()) ? nan : -1, x.dtype(), gpu);
  for (int dim = 0; dim < x.rank(); ++dim) cut = cut.slice(dim, 1, larger[dim], 2);
  cut.copy_(dense);
  return cut;
}

/// Runs the operation on CUDA in f64, f32, f16 and bf16, on inputs of several strides, and expects what the
/// CPU makes in f64 of the same numbers, within 1e-12, `f32_limit` and `roundings` of the 16-bit types; with
/// 0 roundings these are left out.
inline void compare(const Operation& operation, const Tensors& inputs, double f32_limit = 3e-6,
                    double roundings = 2) {
  const auto limit = [&](DType dtype) {
    if (dtype == DType::f64) return 1e-12;
    if (dtype == DType::f32) return f32_limit;
    return f32_limit + roundings * (dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
  };
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (size_of(dtype) == 2 && (roundings == 0 || gpu.is_cpu())) continue;
    const Tensors given = in_type(inputs, dtype);
    const Tensors wanted = operation(in_type(given, DType::f64));
    for (const int view : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{}, view {}", dtype, view));
      Tensors there;
      for (const Tensor& x : given) there.push_back(on_cuda(x, view));
      for (const Tensor& y : wanted)  // what the results take from the pool is not what they should be
        if (y.defined()) Tensor::full(y.shape(), nan, dtype, gpu);
      const Tensors got = operation(there);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        SCOPED_TRACE(fmt::format("result {}", i));
        ASSERT_EQ(got[i].defined(), wanted[i].defined());
        if (!got[i].defined()) continue;
        EXPECT_EQ(got[i].device(), gpu);
        EXPECT_TRUE(got[i].dtype() == dtype || got[i].dtype() == wide_type(dtype)) << got[i].str();
        ASSERT_EQ(got[i].shape(), wanted[i].shape());
        expect_values(got[i], wanted[i].to_vector(), limit(dtype));
      }
    }
  }
}

/// Fresh normal values in f64.
inline Tensor normal(const Shape& shape, std::uint64_t seed, double std = 1) {
  return random(shape, DType::f64, seed, std);
}

/// i64 [count] in [0, m).
inline Tensor random_index(std::int64_t count, std::int64_t m, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::test);
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < count; ++i)
    index.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(m))));
  return Tensor::from(index, {count});
}

}  // namespace gyre::kernels
