#pragma once

#include <cstdint>
#include <memory>

#include "kernels/linear.h"
#include "layers/initialise.h"
#include "layers/module.h"

namespace gyre {

/// y = x Wᵀ + b, activated if asked for; [..., in] → [..., out]. Parameters: weight [out, in], bias [out],
/// which starts at 0.
class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias, RandomStream& stream,
         Initialiser weight = Initialiser::truncated_normal(),
         kernels::Activation activation = kernels::Activation::none);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "Linear"; }
  std::string describe() const override;

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  kernels::Activation activation_;
  std::shared_ptr<kernels::PackedWeight> packed_ = std::make_shared<kernels::PackedWeight>();
};

}  // namespace gyre
