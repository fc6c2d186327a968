#pragma once

#include <cstdint>
#include <string>

#include "core/group.h"
#include "kernels/eq_linear.h"

namespace gyre {

/// What of a linear layer is computed; `backward` is dX, dW and db together, `dw` comes with db.
enum class OpDirection { forward, backward, dx, dw };
/// "forward", "backward", "dx" or "dw"; throws ValueError for any other text.
OpDirection parse_op_direction(std::string_view name);
std::string_view name_of(OpDirection direction);

/// One EQ-Linear layer with C channels per group element in and out, f32, computed as `impl` says: "standard"
/// (its dense matrix as an ordinary layer, oneDNN with packed weights) or the name of an EqBackend. Packed
/// weights and planes are built by the first call.
class OpLayer {
 public:
  /// w [C, C, T], b [C]; `products` as in EqLinearOptions. `group` must outlive the layer.
  OpLayer(const Group& group, std::string impl, int products, const Tensor& w, const Tensor& b);

  const std::string& impl() const { return impl_; }
  /// Name of what runs.
  std::string kernel(OpDirection direction, std::int64_t rows) const;
  /// FLOPs of the matrix products alone; db is not counted.
  double flops(OpDirection direction, std::int64_t rows) const;

  /// x [N, C, T] → [N, C, T].
  Tensor forward(const Tensor& x);
  /// The standard layer's gradients have the shapes of the dense matrix: see `folded`.
  kernels::LinearGrads backward(const Tensor& x, const Tensor& dy, OpDirection direction);
  /// Gradients in f64 and in the shapes of the equivariant layer: dX [N, C, T], dW [C, C, T], db [C].
  kernels::LinearGrads folded(const kernels::LinearGrads& grads) const;

 private:
  bool standard() const { return impl_ == "standard"; }

  const Group& group_;
  std::string impl_;
  std::int64_t channels_;
  kernels::EqLinearOptions options_;
  Tensor weight_, bias_;
  kernels::PackedWeight packed_;
  kernels::EqPlanes planes_;
};

}  // namespace gyre
