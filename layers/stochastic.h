#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/random.h"

namespace gyre {

/// Says on this thread which samples a forward pass sees, so that dropout and drop path address their random
/// numbers by (seed, epoch, layer, sample): results do not depend on how samples are split into batches,
/// micro-steps or ranks. Scopes nest; the innermost counts.
class StochasticScope {
 public:
  /// `sample_ids[i]` is the identity of row i of the batch.
  StochasticScope(std::uint64_t seed, std::uint64_t epoch, std::span<const std::int64_t> sample_ids);
  ~StochasticScope();
  StochasticScope(const StochasticScope&) = delete;
  StochasticScope& operator=(const StochasticScope&) = delete;

  /// The scope of this thread for a batch of `rows`; throws Error naming `layer` if there is none, ShapeError
  /// if its number of samples differs.
  static const StochasticScope& current(std::string_view layer, std::int64_t rows);
  /// Random numbers of row `row` in the layer numbered `site` (below 2^20).
  RandomStream stream(Purpose purpose, std::uint64_t site, std::int64_t row) const;

 private:
  std::uint64_t seed_, epoch_;
  std::vector<std::int64_t> sample_ids_;
  const StochasticScope* outer_;
};

}  // namespace gyre
