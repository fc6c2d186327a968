#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/eq_linear.h"
#include "layers/module.h"
#include "models/model_config.h"

namespace gyre {

/// A classifier: forward maps images [B, in_channels, image_size, image_size] to logits [B, classes].
class Model : public Module {
 public:
  /// `config` is resolved and valid.
  explicit Model(ModelConfig config) : config_(std::move(config)) {}

  const ModelConfig& config() const { return config_; }
  /// Of its parameters.
  Device device();
  /// For every EQ-Linear layer, and in config(); weights stay as they are.
  void set_backend(kernels::EqBackend backend);
  /// Distinct names of the kernels that EQ-Linear layers run for a batch of this size on device(), in
  /// order of first use; `products`: their type, if not that of the parameters.
  std::vector<std::string> kernel_names(std::int64_t batch = 64, std::optional<DType> products = {});

 private:
  ModelConfig config_;
};

}  // namespace gyre
