#pragma once

#include <memory>
#include <string>

#include "models/registry.h"
#include "tests/layers/testing.h"

namespace gyre::testing {

/// A small model on 8 × 8 images of two colours in a 4 × 4 grid of patches.
inline ModelConfig small_config(const std::string& name, const std::string& group,
                                const std::string& pool = "mean", const std::string& pos_embed = "full") {
  ModelConfig config;
  config.name = name;
  config.group = group;
  config.given = {"group", "pool", "pos_embed"};
  config.image_size = 8;
  config.in_channels = 2;
  config.patch_size = 2;
  config.width = 32;
  config.depth = 2;
  config.heads = 2;
  config.mlp_ratio = 2;
  config.classes = 5;
  config.pool = pool;
  config.pos_embed = pos_embed;
  return config;
}

/// A small Swin on 16 × 16 images of two colours: grids of 8 × 8 and 4 × 4, windows of 4, which move once.
inline ModelConfig small_swin(const std::string& name, const std::string& group) {
  ModelConfig config;
  config.name = name;
  config.group = group;
  config.image_size = 16;
  config.in_channels = 2;
  config.patch_size = 2;
  config.width = 16;
  config.depths = {2, 1};
  config.heads = 2;
  config.window = 4;
  config.mlp_ratio = 2;
  config.classes = 5;
  config.given = {"group", "width", "heads", "window"};
  return config;
}

inline Tensor images_for(const ModelConfig& config, std::int64_t batch, std::uint64_t index = 1,
                         DType dtype = DType::f64) {
  return random({batch, config.in_channels, config.image_size, config.image_size}, index, dtype);
}

/// The parameter of a module by its name.
inline Variable& parameter(Module& module, std::string_view name) {
  for (const auto& [own, parameter] : module.parameters())
    if (own == name) return parameter->variable;
  throw Error(fmt::format("no parameter {}", name));
}

}  // namespace gyre::testing
