#pragma once

#include <cstdint>
#include <optional>

#include "autograd/ops/normalization.h"
#include "core/group.h"
#include "layers/module.h"

namespace gyre {

/// Normalises each token over its whole width, then applies gain and bias. [..., width] → the same.
/// Parameters: weight, bias [width].
class LayerNorm : public Module {
 public:
  explicit LayerNorm(std::int64_t width, double eps = 1e-6) : LayerNorm(width, 1, eps) {}

  Variable forward(const Variable& x) override;
  /// x + r, or x, and its norm in one pass forth and back; observers see the norm as a call on the sum. r may
  /// be in f16 or bf16.
  AddLayerNorm add_forward(const Variable& x, const Variable& r = {});
  /// A product reads the result, which is then written in the type of the AutocastScope.
  void set_before_product() { before_product_ = true; }
  std::string_view kind() const override { return "LayerNorm"; }
  std::string describe() const override;

 protected:
  LayerNorm(std::int64_t channels, int repeat, double eps);

 private:
  std::optional<DType> result_type() const;

  int repeat_;
  double eps_;
  Parameter* weight_;
  Parameter* bias_;
  bool before_product_ = false;
};

/// The equivariant norm: mean and variance over all C·T values of a token, gain and bias [C] tied over t.
class EqLayerNorm : public LayerNorm {
 public:
  EqLayerNorm(const Group& group, std::int64_t channels, double eps = 1e-6)
      : LayerNorm(channels, group.order(), eps) {}

  std::string_view kind() const override { return "EqLayerNorm"; }
};

}  // namespace gyre
