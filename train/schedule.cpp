#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gyre {

std::int64_t warmup_updates(std::int64_t total, const ScheduleConfig& config) {
  return std::llround(config.warmup * static_cast<double>(total));
}

double learning_rate(std::int64_t update, std::int64_t total, const ScheduleConfig& config, double peak) {
  require<ValueError>(update >= 0 && total >= 1, "learning_rate: update {} of {}", update, total);
  const std::int64_t warmup = warmup_updates(total, config);
  const std::int64_t last = total - 1;
  update = std::min(update, last);
  if (update < warmup) {
    const double t = static_cast<double>(update) / static_cast<double>(warmup);
    return peak * (config.warmup_start + (1 - config.warmup_start) * t);
  }
  if (config.shape == "constant" || warmup >= last) return peak;
  const double t = static_cast<double>(update - warmup) / static_cast<double>(last - warmup);
  return peak * (config.final + (1 - config.final) * 0.5 * (1 + std::cos(std::numbers::pi * t)));
}

}  // namespace gyre
