#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/eq_trial.h"
#include "bench/machine.h"

namespace gyre {

/// `gyre bench op --sweep N`: EQ-Linear as the program chooses it against an ordinary linear layer, over
/// random shapes.
struct SweepOptions {
  std::int64_t cases = 200;
  std::vector<std::string> groups{"c4"};  ///< one drawn per case
  kernels::EqBackend backend = kernels::EqBackend::automatic;
  std::uint64_t seed = 0;
  int repeats = 3;
  int rounds = 7;         ///< of each layer within a repeat
  double seconds = 2e-3;  ///< per round and layer, at least one call
  std::int64_t most_rows = 8192, most_channels = 1024;
};

/// One case in one direction.
struct SweepRow {
  EqSizes sizes;
  int threads = 1;
  kernels::EqDirection direction = kernels::EqDirection::forward;
  std::string kernel;              ///< what ran
  double ms = 0, ms_standard = 0;  ///< medians over all rounds
  Ratio ratio;                     ///< standard / own time; `best` over repeats
  double rel_l2 = 0;               ///< against f64; backward: the largest of dX, dW and db

  bool wrong() const;   ///< rel_l2 above 5e-6, or not a number
  bool slower() const;  ///< by more than 5 % in every repeat
};

struct SweepResult {
  Machine machine;
  std::uint64_t seed = 0;
  int repeats = 0;
  std::vector<SweepRow> rows;
  std::int64_t wrong = 0, slower = 0;
  double median_ratio = 0, least_ratio = 0;
};

/// Rows from 1 to 8192 and channels from 8 to 1024, in one case of five from 1, are drawn evenly on a
/// logarithmic scale, products of more than 2^33 multiply-adds anew; bias, GELU and threads (1 up to
/// num_threads()) evenly. Weights are packed before the timed part on both sides. `progress` (may be empty)
/// comes after each case of each repeat. Throws ValueError for options that do not fit.
SweepResult sweep(const SweepOptions& options,
                  const std::function<void(std::int64_t done, const SweepRow& last)>& progress = {});

}  // namespace gyre
