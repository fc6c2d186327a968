#pragma once

#include <cstdint>

#include "data/splits.h"
#include "train/config.h"

namespace gyre {

/// Seconds that a configuration takes on this machine.
struct Pace {
  double update = 0;      ///< one update, loading included
  double evaluation = 0;  ///< one pass over the hold-out (or the test set without one)
  double test = 0;        ///< one pass over the test set
  double spent = 0;       ///< the measurement itself
};

/// Times a throwaway model on `device` for a few seconds; the run itself is not touched.
Pace measure_pace(const Config& config, const DataSplits& splits, Device device = {});

/// Updates that fit `budget` seconds: evaluation every `eval_every` epochs of `steps` updates, the final
/// test, the measurement and a reserve of 7 % included. Throws ConfigError if not one fits.
std::int64_t updates_in(double budget, const Pace& pace, std::int64_t steps, std::int64_t eval_every);

}  // namespace gyre
