#pragma once

#include <cstdint>
#include <span>

#include "core/group_action.h"
#include "layers/eq_linear.h"
#include "layers/family.h"

namespace gyre {

/// Sizes of a convolution over a square of tokens.
struct ConvConfig {
  std::int64_t size = 0;  ///< tokens along a side of the input
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;  ///< zeros on every side

  /// Tokens along a side of the output.
  std::int64_t out_size() const { return (size + 2 * padding - kernel) / stride + 1; }
};

/// The convolution that commutes with the group: Y_t = Σ_a conv(X_a, t·w_{t⁻¹a}) + b with w [D, C, T, k, k].
/// Computed exactly as one EQ-Linear with an input channel per (channel c, kernel pixel q), X_{(c,q),a} =
/// x_{c,a}(a·q), W_{(c,q),r} = w_{c,r}(r·q) (docs/math.md). Tokens [B, size², C·T], row-major → [B,
/// out_size², D·T]. Parameters: weight [D, C·k², T] = W with q row-major, bias [D], both uniform in
/// ±1/√(C·T·k²).
class EqConv : public EqLinear {
 public:
  /// Throws ValueError for a group without an image action, ShapeError for a stride that does not meet the
  /// far edge: (size + 2·padding - kernel) mod stride must be 0.
  EqConv(const Group& group, const ConvConfig& config, std::int64_t in, std::int64_t out, bool bias,
         RandomStream& stream, kernels::EqLinearOptions options = {});

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "EqConv"; }
  std::string describe() const override;

 private:
  ConvConfig config_;
  std::int64_t channels_;
  Tensor index_;
};

/// Halves the sides of a square of tokens and doubles their width (Swin): the 2×2 tokens of each place side
/// by side, then `reduction`, without bias, of their `norm`: [B, size², width] → [B, size²/4, 2·width]. In an
/// equivariant family the 2×2 tokens are gathered as the orbits of EqConv, `reduction` is an EQ-Linear with
/// bias (channel c·4 + d holds pixel d of (0,0) (0,1) (1,1) (1,0)) and `norm` stands behind it.
class PatchMerging : public Module {
 public:
  /// Throws ShapeError for an odd size.
  PatchMerging(const LayerFamily& family, std::int64_t size, std::int64_t width, RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return equivariant_ ? "EqPatchMerging" : "PatchMerging"; }
  std::string describe() const override;

 private:
  bool equivariant_;
  std::int64_t size_, width_;
  Tensor index_;
  Module* norm_;
  Module* reduction_;
};

}  // namespace gyre
