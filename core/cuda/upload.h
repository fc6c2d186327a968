#pragma once

#include "core/tensor.h"

namespace gyre::cuda {

/// A dense copy of a CPU tensor on `device`, made beside the compute stream: work given to it before runs on,
/// work given to it from now on waits for the copy. The host goes on at once if the tensor lives in
/// page-locked memory (Tensor::empty_pinned), which is kept until the copy is done but must not be written
/// before. Itself if `device` is the CPU. Best called right after a training step was launched, for the batch
/// of the next.
Tensor upload(const Tensor& host, Device device);

}  // namespace gyre::cuda
