#include "models/swin.h"

#include "autograd/ops/reduction.h"
#include "layers/block.h"
#include "layers/conv.h"
#include "layers/dropout.h"
#include "layers/patch_embed.h"
#include "models/parts.h"

namespace gyre {

Swin::Swin(const ModelConfig& config, std::uint64_t seed) : Model(config), family_(family_for(config)) {
  const PatchConfig patches{config.in_channels, config.image_size, config.patch_size};
  InitStreams streams(seed);
  RandomStream patch_stream = streams.next(), head_stream = streams.next();
  if (const Group* group = family_.group)
    layers_.push_back(&add<EqPatchEmbed>("patch_embed", *group, patches, family_.channels(config.width),
                                         patch_stream, family_.options));
  else
    layers_.push_back(&add<PatchEmbed>("patch_embed", patches, config.width, patch_stream));
  layers_.push_back(&add("patch_embed.norm", family_.norm(config.width)));
  layers_.push_back(&add<Dropout>("pos_drop", config.dropout, family_.order(), 0));

  const std::vector<Stage> stages = stages_of(config);
  BlockConfig block{.dropout = config.dropout, .first_site = 1};
  std::int64_t index = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    if (s > 0) {
      RandomStream stream = streams.next();
      layers_.push_back(&add<PatchMerging>(fmt::format("layers.{}.downsample", s), family_, 2 * stage.grid,
                                           stage.width / 2, stream));
    }
    block.width = stage.width;
    block.heads = stage.heads;
    block.hidden = stage.hidden;
    for (std::int64_t i = 0; i < stage.depth; ++i, ++index) {
      block.windows = WindowConfig{stage.grid, stage.window, i % 2 == 1 ? stage.shift : 0};
      block.drop_path = drop_path_of(config, index, config.depth);
      RandomStream stream = streams.next();
      layers_.push_back(&add<Block>(fmt::format("layers.{}.blocks.{}", s, i), family_, block, stream));
      block.first_site += BlockConfig::sites;
    }
  }
  layers_.push_back(&add("norm", family_.norm(stages.back().width)));
  head_ = &add("head.fc", make_head(family_, stages.back().width, config.classes, head_stream));
}

Variable Swin::forward(const Variable& images) {
  Variable x = images;
  for (Module* layer : layers_) x = (*layer)(x);
  return classify(*head_, family_, mean(x, {1}));
}

std::string Swin::describe() const {
  const ModelConfig& c = config();
  return fmt::format("{}x{}x{}, patch {}, width {}, depths {}, heads {}, window {}, {} classes, group {}",
                     c.in_channels, c.image_size, c.image_size, c.patch_size, c.width,
                     fmt::join(c.depths, " "), c.heads, c.window, c.classes, c.group);
}

}  // namespace gyre
