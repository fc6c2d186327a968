#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace gyre {
namespace {

/// Linear interpolation between the sorted values around `fraction`.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - std::floor(at)) * (sorted[high] - sorted[low]);
}

std::vector<double> all_of(const Runs& runs) {
  std::vector<double> all;
  for (const auto& run : runs) all.insert(all.end(), run.begin(), run.end());
  return all;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

double relative_spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (quantile(values, 0.75) - quantile(values, 0.25)) / quantile(values, 0.5);
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Timing summarise(const Runs& runs) {
  const std::vector<double> all = all_of(runs);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return {median(all), *least, *most, relative_spread(all)};
}

Ratio ratio_of(const Runs& other, const Runs& own) {
  Ratio ratio;
  Runs ratios(own.size());
  for (std::size_t run = 0; run < own.size(); ++run) {
    for (std::size_t i = 0; i < own[run].size(); ++i) ratios[run].push_back(other[run][i] / own[run][i]);
    ratio.best = std::max(ratio.best, median(ratios[run]));
  }
  ratio.median = median(all_of(ratios));
  return ratio;
}

void run_alternating(int rounds, std::span<const std::function<double()>> measure, std::span<Runs> runs) {
  for (Runs& own : runs) own.emplace_back();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < measure.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % measure.size();
      runs[turn].back().push_back(measure[turn]());
    }
  }
}

}  // namespace gyre
