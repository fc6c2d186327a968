#pragma once

#include "layers/family.h"

namespace gyre {

/// fc1 with GELU, fc2, and dropout after each of the two; [..., width] → the same.
class Mlp : public Module {
 public:
  /// The two dropouts take layer numbers `site` and `site` + 1.
  Mlp(const LayerFamily& family, std::int64_t width, std::int64_t hidden, double dropout, std::uint64_t site,
      RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return equivariant_ ? "EqMlp" : "Mlp"; }
  std::string describe() const override;

 private:
  bool equivariant_;
  std::int64_t width_, hidden_;
  Module* fc1_;
  Module* drop1_;
  Module* fc2_;
  Module* drop2_;
};

}  // namespace gyre
