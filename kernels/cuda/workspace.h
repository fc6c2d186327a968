#pragma once

#include <type_traits>

#include "core/tensor.h"

namespace gyre::kernels::cuda {

/// The type that kernels keep sums of T in.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Uninitialised device memory while alive, free for the operations that follow.
template <class T>
class Workspace {
 public:
  Workspace(std::int64_t count, Device device) : tensor_(Tensor::empty({count}, dtype_of<T>(), device)) {}
  T* data() { return tensor_.mutable_data<T>(); }

 private:
  Tensor tensor_;
};

}  // namespace gyre::kernels::cuda
