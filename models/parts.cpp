#include "models/parts.h"

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "layers/linear.h"

namespace gyre {

LayerFamily family_for(const ModelConfig& config) {
  LayerFamily family;
  if (is_equivariant(config))
    family = {&group_of(config),
              {kernels::parse_eq_backend(config.backend), static_cast<int>(config.products)}};
  family.norm_eps = is_swin(config) ? 1e-5 : 1e-6;
  return family;
}

double drop_path_of(const ModelConfig& config, std::int64_t i, std::int64_t depth) {
  return depth > 1 ? config.drop_path * static_cast<double>(i) / static_cast<double>(depth - 1) : 0;
}

std::unique_ptr<Module> make_head(const LayerFamily& family, std::int64_t width, std::int64_t classes,
                                  RandomStream& stream) {
  const std::int64_t channels = family.channels(width);
  // Summing over t multiplies the variance by T; the bound takes it back.
  const double bound = 1 / std::sqrt(static_cast<double>(channels) * family.order());
  return std::make_unique<Linear>(
      channels, classes, true, stream,
      family.equivariant() ? Initialiser::uniform(bound) : Initialiser::truncated_normal());
}

Variable invariant(const LayerFamily& family, const Variable& x) {
  return family.equivariant() ? sum(reshape(x, {x.size(0), -1, family.order()}), {2}) : x;
}

Variable classify(Module& head, const LayerFamily& family, const Variable& x) {
  const AutocastScope off(std::nullopt);
  return head(invariant(family, x));
}

}  // namespace gyre
