#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "data/dataset.h"

namespace gyre {

/// Fashion-MNIST (Xiao et al., arXiv 1708.07747): 60,000 + 10,000 grey 28 × 28 images of 10 kinds of
/// clothing. `split` is "train" or "t10k"; an empty folder means where Debian's dataset-fashion-mnist puts
/// the files.
std::shared_ptr<const Dataset> open_fashion_mnist(const std::filesystem::path& folder, std::string_view split,
                                                  int classes = 0);

}  // namespace gyre
