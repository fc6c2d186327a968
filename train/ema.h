#pragma once

#include <cstdint>
#include <vector>

#include "core/safetensors.h"
#include "layers/module.h"

namespace gyre {

/// Exponential moving average of a module's parameters: a record of its own, with its own update counter. The
/// decay of update n (from 1) is min(decay, (1 + n) / (10 + n)), so that early averages forget the initial
/// weights.
class Ema {
 public:
  /// Averages start as the weights. `module` must outlive this; ValueError unless decay is in [0, 1).
  Ema(Module& module, double decay);

  /// After each optimiser update; throws Error while swapped.
  void update();
  std::int64_t updates() const { return updates_; }
  /// Averages by parameter name, also while swapped: views, not copies.
  TensorMap state() const;
  /// Copies `state` in from any device. Throws Error naming the first missing, unknown or misshapen tensor
  /// before anything is changed.
  void load_state(const TensorMap& state, std::int64_t updates);
  /// Exchanges the storages of module and averages: averaged weights in the module until the next swap.
  void swap();

 private:
  Module& module_;
  double decay_;
  std::int64_t updates_ = 0;
  std::vector<Tensor> averages_;  ///< the module's own weights while swapped
  bool swapped_ = false;
};

/// Averaged weights in the module while alive; does nothing for a null `ema`.
class EmaScope {
 public:
  explicit EmaScope(Ema* ema) : ema_(ema) {
    if (ema_) ema_->swap();
  }
  ~EmaScope() {
    if (ema_) ema_->swap();
  }
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  Ema* ema_;
};

}  // namespace gyre
