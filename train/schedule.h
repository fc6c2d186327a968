#pragma once

#include <cstdint>

#include "train/config.h"

namespace gyre {

/// Updates of the warm-up: the fraction `warmup` of `total`, rounded.
std::int64_t warmup_updates(std::int64_t total, const ScheduleConfig& config);

/// Learning rate of update `update` (0-based) of `total`: a pure function, so that it is the same after a
/// resume. Linear from warmup_start·peak at update 0 to peak at the first update after the warm-up, then half
/// a cosine down to final·peak at the last update (Loshchilov & Hutter, arXiv 1608.03983) or constant. Later
/// updates keep the last rate. Throws ValueError for a negative update or total < 1.
double learning_rate(std::int64_t update, std::int64_t total, const ScheduleConfig& config, double peak);

}  // namespace gyre
