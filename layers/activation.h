#pragma once

#include "layers/module.h"

namespace gyre {

/// x·Φ(x) with the exact error function. Pointwise, hence equivariant under every group.
class Gelu : public Module {
 public:
  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "Gelu"; }
};

}  // namespace gyre
