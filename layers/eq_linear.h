#pragma once

#include <cstdint>
#include <memory>

#include "core/group.h"
#include "core/random.h"
#include "kernels/eq_linear.h"
#include "layers/module.h"

namespace gyre {

/// What layers share whose arithmetic is one EQ-Linear product: the choice of kernel and the planes that it
/// keeps.
class EqProduct {
 public:
  EqProduct(const Group& group, std::int64_t channels_in, std::int64_t channels_out,
            kernels::EqLinearOptions options);
  virtual ~EqProduct() = default;

  const Group& group() const { return *group_; }
  const kernels::EqLinearOptions& options() const { return options_; }
  /// Weights stay as they are; only the planes are built anew.
  void set_backend(kernels::EqBackend backend);
  /// Name of the kernel that runs for `rows` rows (batch × tokens).
  std::string kernel_name(DType dtype, std::int64_t rows, Device device = {}) const;
  /// How often planes were built from the weight so far.
  int rebuilds() const;

 protected:
  /// x [..., C·T], weight [D, C, T], bias [D] or undefined → [..., D·T].
  Variable product(const Variable& x, const Variable& weight, const Variable& bias,
                   kernels::Activation activation = kernels::Activation::none) const;
  std::int64_t channels_in() const { return channels_in_; }
  std::int64_t channels_out() const { return channels_out_; }

 private:
  const Group* group_;
  std::int64_t channels_in_, channels_out_;
  kernels::EqLinearOptions options_;
  std::shared_ptr<kernels::EqPlanes> planes_;
};

/// The linear layer that commutes with the group action: Y[n,d,t] = Σ_c Σ_s X[n,c,s]·W[d,c,t⁻¹s] + b[d]
/// (docs/math.md).
/// [..., C·T] → [..., D·T], activated if asked for: pointwise, hence equivariant. Parameters: weight [D, C,
/// T], bias [D], both uniform in ±1/√(C·T) at the start.
class EqLinear : public Module, public EqProduct {
 public:
  /// `in`, `out` are channels per group element; `group` lives as long as the layer (Group::get).
  EqLinear(const Group& group, std::int64_t in, std::int64_t out, bool bias, RandomStream& stream,
           kernels::EqLinearOptions options = {}, kernels::Activation activation = kernels::Activation::none);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "EqLinear"; }
  std::string describe() const override;

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  kernels::Activation activation_;
};

}  // namespace gyre
