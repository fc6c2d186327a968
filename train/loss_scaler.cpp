#include "train/loss_scaler.h"

#include <algorithm>

#include "core/error.h"

namespace gyre {

void LossScaler::update_done() {
  if (++state_.good_updates < growth_interval) return;
  state_ = {std::min(most, growth * state_.scale), 0};
}

bool LossScaler::overflowed() {
  const bool lowered = state_.scale > least;
  state_ = {std::max(least, state_.scale / growth), 0};
  return lowered;
}

void LossScaler::load_state(const LossScale& state) {
  require<ValueError>(state.scale >= least && state.scale <= most, "loss scale {:g} is out of range [{}, {}]",
                      state.scale, least, most);
  require<ValueError>(state.good_updates >= 0, "loss scale: {} updates since it changed", state.good_updates);
  state_ = state;
}

}  // namespace gyre
