#pragma once

#include <cstdint>
#include <memory>

#include "core/random.h"
#include "kernels/linear.h"
#include "layers/eq_linear.h"
#include "layers/module.h"

namespace gyre {

/// Sizes of a patch embedding: kernel = stride = patch, which divides the square image.
struct PatchConfig {
  std::int64_t in_channels = 0;
  std::int64_t image_size = 0;
  std::int64_t patch = 0;
};

/// Ordinary patch embedding: images [B, in, S, S] → tokens [B, patches, width], patches row-major.
/// Parameters: proj.weight [width, in, patch, patch] (truncated normal 0.02), proj.bias [width] (0).
class PatchEmbed : public Module {
 public:
  PatchEmbed(const PatchConfig& config, std::int64_t width, RandomStream& stream);

  Variable forward(const Variable& images) override;
  std::string_view kind() const override { return "PatchEmbed"; }
  std::string describe() const override;

 private:
  PatchConfig config_;
  Parameter* weight_;
  Parameter* bias_;
  Tensor patch_index_;
  std::shared_ptr<kernels::PackedWeight> packed_ = std::make_shared<kernels::PackedWeight>();
};

/// Lifting patch embedding: output channel (d, t) applies the turned filter t·w_d. Computed exactly as one
/// EQ-Linear over the orbits of a patch's pixels (docs/math.md). Images [B, in, S, S] → tokens [B, patches,
/// C·T]. Parameters: proj.weight [C, in, patch, patch], proj.bias [C], both uniform in ±1/√(in·patch²).
class EqPatchEmbed : public Module, public EqProduct {
 public:
  /// Throws ValueError for a group without an image action.
  EqPatchEmbed(const Group& group, const PatchConfig& config, std::int64_t channels, RandomStream& stream,
               kernels::EqLinearOptions options = {});

  Variable forward(const Variable& images) override;
  std::string_view kind() const override { return "EqPatchEmbed"; }
  std::string describe() const override;

 private:
  /// The EQ-Linear weight [C, in·orbits, T] of the filter.
  Variable derived_weight();

  PatchConfig config_;
  Parameter* weight_;
  Parameter* bias_;
  Tensor patch_index_, filter_index_, filter_scale_;
  Tensor derived_;  ///< cache of derived_weight(), valid for filter version derived_from_
  std::uint64_t derived_from_ = 0;
};

}  // namespace gyre
