#include "layers/stochastic.h"

#include "core/error.h"

namespace gyre {

namespace {
thread_local const StochasticScope* innermost = nullptr;
constexpr int site_bits = 20;
}  // namespace

StochasticScope::StochasticScope(std::uint64_t seed, std::uint64_t epoch,
                                 std::span<const std::int64_t> sample_ids)
    : seed_(seed), epoch_(epoch), sample_ids_(sample_ids.begin(), sample_ids.end()), outer_(innermost) {
  innermost = this;
}

StochasticScope::~StochasticScope() { innermost = outer_; }

const StochasticScope& StochasticScope::current(std::string_view layer, std::int64_t rows) {
  require(innermost != nullptr, "{} in training mode needs a StochasticScope on this thread", layer);
  const auto samples = static_cast<std::int64_t>(innermost->sample_ids_.size());
  require<ShapeError>(samples == rows, "{}: batch of {} rows, but the StochasticScope names {} samples",
                      layer, rows, samples);
  return *innermost;
}

RandomStream StochasticScope::stream(Purpose purpose, std::uint64_t site, std::int64_t row) const {
  require<ValueError>(site < (std::uint64_t{1} << site_bits), "layer number {} is not below 2^{}", site,
                      site_bits);
  const auto sample = static_cast<std::uint64_t>(sample_ids_.at(static_cast<std::size_t>(row)));
  return RandomStream(seed_, purpose, (epoch_ << site_bits) | site, sample);
}

}  // namespace gyre
