#pragma once

#include <cstdint>

#include "core/random.h"
#include "layers/family.h"
#include "models/model_config.h"

namespace gyre {

/// The layers that a resolved config asks for.
LayerFamily family_for(const ModelConfig& config);

/// Streams in order of construction, so that one child's size does not move another's numbers.
class InitStreams {
 public:
  explicit InitStreams(std::uint64_t seed) : seed_(seed) {}
  RandomStream next() { return RandomStream(seed_, Purpose::init, index_++); }

 private:
  std::uint64_t seed_;
  std::uint64_t index_ = 0;
};

/// Drop path rate of block `i` of `depth`: rises linearly from 0 to the config's.
double drop_path_of(const ModelConfig& config, std::int64_t i, std::int64_t depth);

/// The linear layer of the head: reads `width` channels summed over t.
std::unique_ptr<Module> make_head(const LayerFamily& family, std::int64_t width, std::int64_t classes,
                                  RandomStream& stream);
/// Sum over t of features [B, width], which leaves what the group cannot change: [B, width / T].
Variable invariant(const LayerFamily& family, const Variable& x);
/// Logits [B, classes] of features [B, width], in the type of the features also in an AutocastScope: one row
/// per image costs little, and the loss sees logits that nothing rounded.
Variable classify(Module& head, const LayerFamily& family, const Variable& x);

}  // namespace gyre
