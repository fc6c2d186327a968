#include "data/sampler.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/random.h"

namespace gyre {

Sampler::Sampler(std::int64_t size, std::int64_t batch_size, std::uint64_t seed, int rank, int world,
                 bool shuffle, bool drop_last)
    : size_(size),
      batch_size_(batch_size),
      seed_(seed),
      rank_(rank),
      world_(world),
      shuffle_(shuffle),
      drop_last_(drop_last) {
  require<ValueError>(world >= 1 && rank >= 0 && rank < world, "rank {} of {}", rank, world);
  require<ValueError>(batch_size >= world, "batch {} is too small for {} rank{}", batch_size, world,
                      world == 1 ? "" : "s");
  require<ValueError>(batches() > 0, "{} samples, batch {}{}: 0 steps", size, batch_size,
                      drop_last ? ", drop_last" : "");
}

std::int64_t Sampler::batches() const {
  return drop_last_ ? size_ / batch_size_ : (size_ + batch_size_ - 1) / batch_size_;
}

std::vector<std::int64_t> Sampler::order(std::int64_t epoch) const {
  if (shuffle_)
    return RandomStream(seed_, Purpose::shuffle, static_cast<std::uint64_t>(epoch)).permutation(size_);
  std::vector<std::int64_t> order(static_cast<std::size_t>(size_));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::int64_t Sampler::global_batch(std::int64_t step) const {
  require<ValueError>(step >= 0 && step < batches(), "step {} of {}", step, batches());
  return std::min(batch_size_, size_ - step * batch_size_);
}

std::pair<std::int64_t, std::int64_t> Sampler::range(std::int64_t step) const {
  const std::int64_t count = global_batch(step);
  const std::int64_t start = step * batch_size_;
  return {start + count * rank_ / world_, start + count * (rank_ + 1) / world_};
}

std::vector<std::int64_t> Sampler::batch(std::int64_t epoch, std::int64_t step) const {
  const auto [first, last] = range(step);
  const std::vector<std::int64_t> all = order(epoch);
  return {all.begin() + first, all.begin() + last};
}

}  // namespace gyre
