#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace gyre {

/// Which samples make up each batch, a pure function of (seed, epoch, step, rank): nothing to advance or
/// restore. A global batch is split over the ranks in contiguous parts, so N ranks see what one would see.
/// Without drop_last every sample comes exactly once over all ranks; nothing is repeated. A rank's part of a
/// short last batch may be empty.
class Sampler {
 public:
  /// `batch_size` is global. ValueError for zero steps ("N samples, batch B, drop_last: 0 steps"), a batch
  /// smaller than the world, or a rank outside it.
  Sampler(std::int64_t size, std::int64_t batch_size, std::uint64_t seed, int rank = 0, int world = 1,
          bool shuffle = true, bool drop_last = false);

  std::int64_t size() const { return size_; }
  std::int64_t batch_size() const { return batch_size_; }
  /// Steps per epoch; the same for every rank and epoch.
  std::int64_t batches() const;
  /// All samples in the order of `epoch`.
  std::vector<std::int64_t> order(std::int64_t epoch) const;
  /// This rank's part of a step, as positions [first, last) in order(epoch).
  std::pair<std::int64_t, std::int64_t> range(std::int64_t step) const;
  /// This rank's sample indices; computes the whole order, so loops take order() once and range() per step.
  std::vector<std::int64_t> batch(std::int64_t epoch, std::int64_t step) const;
  /// Samples of a step over all ranks.
  std::int64_t global_batch(std::int64_t step) const;

 private:
  std::int64_t size_, batch_size_;
  std::uint64_t seed_;
  int rank_, world_;
  bool shuffle_, drop_last_;
};

}  // namespace gyre
