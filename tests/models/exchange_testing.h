#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/exchange/layout.h"
#include "models/registry.h"

namespace gyre::testing {

/// A file of tests/golden, made by a script there.
inline SafetensorsFile golden(const std::string& name) {
  return read_safetensors(fmt::format("{}/tests/golden/{}.safetensors", GYRE_SOURCE_DIR, name));
}

/// Largest difference of the model's logits from those in `name`.io, or `other`.io, on the images there.
inline double golden_error(const std::string& name, const ModelConfig& config, Layout layout,
                           const std::string& other = "") {
  const TensorMap io = golden((other.empty() ? name : other) + ".io").tensors;
  const auto model = make_model(config, 1);
  model->load_state(import_weights(golden(name).tensors, *model, layout).weights);
  model->eval();
  const NoGrad no_grad;
  const std::vector<double> logits = (*model)(Variable(io.at("images"))).data().to_vector();
  const std::vector<double> expected = io.at("logits").to_vector();
  EXPECT_EQ(logits.size(), 20u);
  double largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double difference = std::abs(logits[i] - expected.at(i));
    largest = std::isnan(difference) ? difference : std::max(largest, difference);
  }
  return largest;
}

inline ModelConfig golden_config(const std::string& name) {
  ModelConfig config;
  config.name = name;
  config.image_size = 32;
  config.in_channels = 3;
  config.patch_size = 8;
  config.classes = 10;
  return config;
}

/// The error of importing, which is one line.
inline std::string refusal(const TensorMap& file, const ModelConfig& config, Layout layout) {
  const auto model = make_model(config, 0);
  try {
    import_weights(file, *model, layout);
  } catch (const ValueError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  return "no error";
}

inline bool same_bits(const TensorMap& a, const TensorMap& b) {
  return encode_safetensors(a) == encode_safetensors(b);
}

}  // namespace gyre::testing
