#pragma once

#include <memory>

#include "core/tensor.h"

namespace gyre::cuda {

class Event;

/// A dense copy of a CPU tensor on a CUDA device, made on the copy stream beside whatever is computed there.
/// The host goes on at once if the tensor lives in page-locked memory (Tensor::empty_pinned), which is kept
/// until the copy is done but must not be written before.
class Upload {
 public:
  /// Starts the copy. DeviceError unless `host` is on the CPU.
  Upload(const Tensor& host, Device device);
  ~Upload();
  Upload(Upload&&) noexcept = default;
  Upload& operator=(Upload&&) = delete;

  /// The copy: work given to the compute stream from now on waits for it. Once.
  Tensor take();

 private:
  Tensor result_;
  std::shared_ptr<const Event> done_;  // null once taken
};

/// An Upload, taken at once: work given to the compute stream before runs on. Itself if `device` is the CPU.
Tensor upload(const Tensor& host, Device device);

}  // namespace gyre::cuda
