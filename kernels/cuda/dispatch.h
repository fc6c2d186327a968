#pragma once

#include <string_view>
#include <type_traits>

#include "core/cuda/runtime.h"
#include "core/tensor.h"

namespace gyre::prim {
struct half_t;
struct bf16_t;
}  // namespace gyre::prim

namespace gyre::kernels::cuda {

/// Calls `f(std::type_identity<T>{})` with the element type T that the launchers take for `dtype`; `what`
/// names the operation in the error for types that are not floating.
template <class F>
decltype(auto) dispatch(DType dtype, std::string_view what, F&& f) {
  switch (dtype) {
    case DType::f64: return f(std::type_identity<double>{});
    case DType::f32: return f(std::type_identity<float>{});
    case DType::f16: return f(std::type_identity<prim::half_t>{});
    case DType::bf16: return f(std::type_identity<prim::bf16_t>{});
    default: throw DTypeError(fmt::format("{} takes f64, f32, f16 or bf16, not {}", what, dtype));
  }
}

/// Elements of a tensor, as launchers take them; null if it is undefined.
template <class T>
const T* data_of(const Tensor& x) {
  return x.defined() ? static_cast<const T*>(x.raw_data()) : nullptr;
}
template <class T>
T* mutable_data_of(Tensor& x) {
  return x.defined() ? static_cast<T*>(x.raw_mutable_data()) : nullptr;
}

/// The stream of the operations of x's device, which becomes current on this thread.
inline void* stream_of(const Tensor& x) { return gyre::cuda::compute_stream(x.device().index); }

}  // namespace gyre::kernels::cuda
