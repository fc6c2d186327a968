#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/eq_linear.h"

namespace gyre {

struct PredictOptions {
  std::filesystem::path checkpoint;  ///< as find_checkpoint takes it
  std::vector<std::filesystem::path> images;
  std::string weights = "ema";                ///< ema | raw
  std::optional<kernels::EqBackend> backend;  ///< overrides the checkpoint's
  std::int64_t top = 5;                       ///< classes per picture, at most all
  std::int64_t batch_size = 64;
  Device device;
};

struct ClassProbability {
  std::int64_t index = 0;
  std::string name;
  double probability = 0;
};

struct Prediction {
  std::filesystem::path file;
  std::vector<ClassProbability> classes;  ///< most probable first; empty if the picture cannot be read
  std::string error;                      ///< why it cannot, one line that begins with the file; else empty
};

/// Classifies pictures of any size with the checkpoint's own preprocessing; one prediction per picture, in
/// their order. Throws FileError for a checkpoint that cannot be read.
std::vector<Prediction> predict(const PredictOptions& options);

}  // namespace gyre
