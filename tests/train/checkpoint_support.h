#pragma once

#include <cstdint>
#include <string>

#include "core/random.h"
#include "models/registry.h"
#include "train/checkpoint.h"

namespace gyre::test {

inline Config small_config() {
  Config config;
  config.model.name = "eq_vit";
  config.model.image_size = 8;
  config.model.patch_size = 4;
  config.model.width = 8;
  config.model.depth = 1;
  config.model.heads = 1;
  config.model.mlp_ratio = 2;
  config.model.classes = 3;
  config.optimizer.learning_rate = 0.1 + 0.2;  // needs all 17 digits
  config.train.seed = 18446744073709551615u;
  return config;
}

/// A checkpoint whose tensors and state depend on `updates`.
inline Checkpoint small_checkpoint(std::int64_t updates) {
  Checkpoint checkpoint;
  checkpoint.config = parse_config(config_to_yaml(small_config()), "small");
  checkpoint.preprocessing.native_size = checkpoint.preprocessing.size = 8;
  checkpoint.preprocessing.mean = {1.0 / 3};
  checkpoint.class_names = {"T-shirt, \"white\"", "gar\xc3\xa7on", ""};
  checkpoint.state.updates = updates;
  checkpoint.state.seconds = 1.0 / 3 + static_cast<double>(updates);
  RandomStream stream(static_cast<std::uint64_t>(updates), Purpose::test);
  const auto model = make_model(checkpoint.config.model, 0);
  for (const auto& [name, tensor] : model->state()) {
    checkpoint.weights[name] = random_normal(tensor.shape(), 1, stream);
    checkpoint.ema[name] = random_normal(tensor.shape(), 1, stream);
    checkpoint.optimizer["exp_avg." + name] = random_normal(tensor.shape(), 1, stream);
  }
  checkpoint.optimizer["updates"] = Tensor::from({updates}, {1});
  return checkpoint;
}

/// Names, types, shapes and bits.
inline bool same(const TensorMap& a, const TensorMap& b) {
  return encode_safetensors(a) == encode_safetensors(b);
}

}  // namespace gyre::test
