#pragma once

#include <cstdint>
#include <memory>

#include "models/model.h"

namespace gyre {

/// Builds the model that `config` names (resolved and validated here), in f32 on the CPU. Its weights are a
/// pure function of the sizes and `seed`.
std::unique_ptr<Model> make_model(const ModelConfig& config, std::uint64_t seed);

}  // namespace gyre
