#pragma once

#include <string>
#include <vector>

#include "data/loader.h"
#include "train/config.h"

namespace gyre {

/// The same sizes as an ordinary model (`impl` standard) or with EQ-Linear computed as the backend `impl`.
ModelConfig twin_of(ModelConfig model, const std::string& impl);

/// Batches held in memory, and where they come from.
struct BenchBatches {
  std::vector<Batch> batches;
  std::string images;  ///< "fashion_mnist", "random", or "random (why)"
};

/// Fits `config.model` to the training images of `config.data` and reads batches of train.batch_size from
/// them; random images and labels of the model's size where the data is not there or `random` asks for them.
BenchBatches prepare_batches(Config& config, bool random);

}  // namespace gyre
