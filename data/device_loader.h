#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "core/cuda/upload.h"
#include "data/loader.h"

namespace gyre {

/// The batches of a Loader with images and labels on a device. On CUDA they are prepared in page-locked
/// memory, and each is copied while the device computes with the one before. Called from one thread.
class DeviceLoader {
 public:
  /// As for Loader.
  DeviceLoader(std::shared_ptr<const Dataset> dataset, Pipeline pipeline, Sampler sampler, std::uint64_t seed,
               int workers, int prefetch, Device device);

  void start_epoch(std::int64_t epoch, std::int64_t first_step = 0);
  /// As Loader::next: the same batches, and an error when its batch is due.
  std::optional<Batch> next();

  const Sampler& sampler() const { return loader_.sampler(); }
  Device device() const { return device_; }

 private:
  /// What comes next: a batch on its way to the device, an error, or the end of the epoch.
  struct Ahead {
    std::vector<std::int64_t> ids;
    std::optional<cuda::Upload> images, labels;
    std::exception_ptr error;
  };

  Ahead look_ahead();

  Loader loader_;
  Device device_;
  std::optional<Ahead> ahead_;  // of CUDA devices
};

}  // namespace gyre
