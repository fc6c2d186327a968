#include "train/ema.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/optimizer.h"

namespace gyre {

Ema::Ema(Module& module, double decay) : module_(module), decay_(decay) {
  require<ValueError>(decay >= 0 && decay < 1, "EMA decay {} is out of range [0, 1)", decay);
  for (const auto& [name, parameter] : module.parameters())
    averages_.push_back(parameter->variable.data().clone());
}

void Ema::update() {
  require(!swapped_, "EMA update while the averages are in the module: swap back first");
  std::vector<Tensor> weights;
  for (const auto& [name, parameter] : module_.parameters()) weights.push_back(parameter->variable.data());
  const auto n = static_cast<double>(updates_ + 1);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  kernels::lerp_(averages_, weights, 1 - decay);
  ++updates_;
}

TensorMap Ema::state() const {
  if (swapped_) return module_.state();
  TensorMap state;
  std::size_t i = 0;
  for (const auto& [name, parameter] : module_.parameters()) state.emplace(name, averages_[i++]);
  return state;
}

void Ema::load_state(const TensorMap& given, std::int64_t updates) {
  require(!swapped_, "EMA load while the averages are in the module: swap back first");
  require(updates >= 0, "EMA state: update count {} is negative", updates);
  TensorMap own = state();
  for (const auto& [name, average] : own) {
    const auto found = given.find(name);
    require(found != given.end(), "EMA state: tensor {} is missing", name);
    const Tensor& source = found->second;
    require(source.shape() == average.shape(), "EMA state: tensor {} has shape {}, not {}", name,
            source.shape().str(), average.shape().str());
    require(is_floating(source.dtype()), "EMA state: tensor {} has type {}, which is not a floating type",
            name, source.dtype());
  }
  for (const auto& [name, tensor] : given) require(own.contains(name), "EMA state: unknown tensor {}", name);
  for (auto& [name, average] : own) average.copy_(given.at(name).to(average.device()));
  updates_ = updates;
}

void Ema::swap() {
  std::size_t i = 0;
  for (const auto& [name, parameter] : module_.parameters()) {
    Tensor weights = parameter->variable.data();
    parameter->variable.set_data(averages_[i]);
    averages_[i++] = weights;
  }
  swapped_ = !swapped_;
}

}  // namespace gyre
