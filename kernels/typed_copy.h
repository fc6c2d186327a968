#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/tensor.h"

namespace gyre::kernels {

/// Which contents something was built from; views of one storage share its version.
struct Source {
  std::uint64_t version = 0;  // 0 is never drawn
  const void* data = nullptr;
  Shape shape;

  static Source of(const Tensor& x) { return {x.version(), x.raw_data(), x.shape()}; }
  bool is(const Tensor& x) const {
    return version == x.version() && data == x.raw_data() && shape == x.shape();
  }
};

/// A tensor in another type, made anew on the first use after its contents changed. A cache, never state;
/// several threads may use it at once.
class TypedCopy {
 public:
  /// A dense copy of x in `dtype`; x itself if that is its type.
  Tensor of(const Tensor& x, DType dtype);
  /// How often a copy was made so far.
  int renewals() const { return renewals_; }
  void clear();

 private:
  std::mutex mutex_;
  Source source_;
  Tensor copy_;
  std::atomic<int> renewals_ = 0;
};

/// The parameters of one layer in the type that it computes in.
struct LayerCopies {
  TypedCopy weight, bias;

  void clear() {
    weight.clear();
    bias.clear();
  }
};

}  // namespace gyre::kernels
