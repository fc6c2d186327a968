#pragma once

#include <string>

#include "data/splits.h"
#include "train/config.h"
#include "train/step.h"

namespace gyre {

/// Everything that a run is about to do, in aligned lines: data, model, optimiser, schedule, machine and
/// each effective setting.
std::string banner(const Config& config, const DataSplits& splits, Learner& learner,
                   std::int64_t steps_per_epoch, Device device);

}  // namespace gyre
