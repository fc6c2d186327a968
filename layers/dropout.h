#pragma once

#include <cstdint>

#include "layers/module.h"

namespace gyre {

// Both act in training mode only, draw from the StochasticScope of the thread and throw without one. What is
// kept is divided by 1 - rate. `site` numbers the layers of a model.

/// Zeroes single channels of a token, or whole orbits: all `order` values of a channel together. [B, ...,
/// C·order] → same.
class Dropout : public Module {
 public:
  /// Throws ValueError unless 0 ≤ rate < 1.
  Dropout(double rate, int order, std::uint64_t site);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "Dropout"; }
  std::string describe() const override;

 private:
  double rate_;
  int order_;
  std::uint64_t site_;
};

/// Zeroes a whole sample: stochastic depth, when it sits on a residual branch. [B, ...] → same.
class DropPath : public Module {
 public:
  /// Throws ValueError unless 0 ≤ rate < 1.
  DropPath(double rate, std::uint64_t site);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "DropPath"; }
  std::string describe() const override;

 private:
  double rate_;
  std::uint64_t site_;
};

}  // namespace gyre
