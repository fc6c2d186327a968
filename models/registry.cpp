#include "models/registry.h"

#include "models/swin.h"
#include "models/vit.h"

namespace gyre {

std::unique_ptr<Model> make_model(const ModelConfig& config, std::uint64_t seed) {
  const ModelConfig resolved = resolve(config);
  validate(resolved);
  if (is_swin(resolved)) return std::make_unique<Swin>(resolved, seed);
  return std::make_unique<Vit>(resolved, seed);
}

}  // namespace gyre
