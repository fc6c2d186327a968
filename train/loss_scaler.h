#pragma once

#include <cstdint>

namespace gyre {

/// Where a LossScaler stands.
struct LossScale {
  double scale = 65536;
  std::int64_t good_updates = 0;  ///< since the scale last changed
};

/// Dynamic scaling of the loss (Micikevicius et al., arXiv 1710.03740), which keeps gradients in f16 above
/// its smallest number: as large as they bear it. Scales are powers of two, so that taking them off is exact.
class LossScaler {
 public:
  static constexpr double growth = 2, least = 1, most = 1LL << 62;
  static constexpr std::int64_t growth_interval = 2000;  ///< updates without overflow

  double scale() const { return state_.scale; }
  /// After an update with finite gradients.
  void update_done();
  /// After gradients that were not finite: halves the scale. False if it was the least already, so that the
  /// scale is not to blame.
  bool overflowed();

  const LossScale& state() const { return state_; }
  /// ValueError unless the scale is in [least, most] and the count not negative.
  void load_state(const LossScale& state);

 private:
  LossScale state_;
};

}  // namespace gyre
