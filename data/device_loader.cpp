#include "data/device_loader.h"

#include <utility>

namespace gyre {

DeviceLoader::DeviceLoader(std::shared_ptr<const Dataset> dataset, Pipeline pipeline, Sampler sampler,
                           std::uint64_t seed, int workers, int prefetch, Device device)
    : loader_(std::move(dataset), std::move(pipeline), sampler, seed, workers, prefetch,
              device.is_cuda() ? HostMemory::pinned : HostMemory::plain),
      device_(device) {}

void DeviceLoader::start_epoch(std::int64_t epoch, std::int64_t first_step) {
  ahead_.reset();
  loader_.start_epoch(epoch, first_step);
}

DeviceLoader::Ahead DeviceLoader::look_ahead() {
  Ahead ahead;
  try {
    if (std::optional<Batch> batch = loader_.next()) {
      ahead.images.emplace(batch->images, device_);
      ahead.labels.emplace(batch->labels, device_);
      ahead.ids = std::move(batch->ids);
    }
  } catch (...) {
    ahead.error = std::current_exception();
  }
  return ahead;
}

std::optional<Batch> DeviceLoader::next() {
  if (device_.is_cpu()) return loader_.next();
  if (!ahead_) ahead_.emplace(look_ahead());
  if (ahead_->error) std::rethrow_exception(ahead_->error);
  if (!ahead_->images) return std::nullopt;
  // This batch is waited for before the copy of the next begins, so that computing does not wait for both.
  Batch batch{ahead_->images->take(), ahead_->labels->take(), std::move(ahead_->ids)};
  ahead_.emplace(look_ahead());
  return batch;
}

}  // namespace gyre
