#pragma once

#include <cstdint>
#include <memory>

#include "data/data_config.h"
#include "data/dataset.h"
#include "data/transform.h"

namespace gyre {

/// The three parts of a dataset and the preprocessing they share. `holdout` is null if the configuration asks
/// for none.
struct DataSplits {
  std::shared_ptr<const Dataset> train, holdout, test;
  Preprocessing preprocessing;
};

/// Opens what the configuration names: for idx and fashion_mnist the files train-… and t10k-… of the folder,
/// for image_folder its sub-folders train and val (or test). ValueError naming the field, FileError naming
/// the file.
DataSplits open_data(const DataConfig& config, std::uint64_t seed);

}  // namespace gyre
