#include "models/vit.h"

#include "autograd/autocast.h"
#include "autograd/ops/reduction.h"
#include "autograd/ops/shape.h"
#include "layers/block.h"
#include "layers/dropout.h"
#include "layers/initialise.h"
#include "layers/patch_embed.h"
#include "layers/position.h"
#include "models/parts.h"

namespace gyre {

Vit::Vit(const ModelConfig& config, std::uint64_t seed) : Model(config), family_(family_for(config)) {
  const std::int64_t width = config.width, channels = family_.channels(width);
  const bool token = config.pool == "token";
  const PatchConfig patches{config.in_channels, config.image_size, config.patch_size};
  const Group* group = family_.group;
  InitStreams streams(seed);

  RandomStream token_stream = streams.next();
  if (token) {
    const Shape shape = group ? Shape{channels} : Shape{1, 1, width};
    cls_token_ = &add_parameter("cls_token", Initialiser::truncated_normal()(shape, token_stream), false);
  }
  RandomStream patch_stream = streams.next();
  if (group)
    patch_embed_ =
        &add<EqPatchEmbed>("patch_embed", *group, patches, channels, patch_stream, family_.options);
  else
    patch_embed_ = &add<PatchEmbed>("patch_embed", patches, width, patch_stream);

  RandomStream position_stream = streams.next();
  if (group)
    pos_embed_ = &add<EqPositionTable>("pos_embed", parse_position_kind(config.pos_embed), *group,
                                       grid_of(config), channels, token, position_stream);
  else
    pos_embed_ = &add<PositionTable>("pos_embed", tokens_of(config), width, position_stream);
  pos_drop_ = &add<Dropout>("pos_drop", config.dropout, family_.order(), 0);

  RandomStream head_stream = streams.next();
  BlockConfig block{width, config.heads, hidden_of(config), config.dropout, 0, 1};
  for (std::int64_t i = 0; i < config.depth; ++i) {
    block.drop_path = drop_path_of(config, i, config.depth);
    RandomStream stream = streams.next();
    blocks_.push_back(&add<Block>(fmt::format("blocks.{}", i), family_, block, stream));
    block.first_site += BlockConfig::sites;
  }
  norm_ = &add("norm", family_.norm(width));
  head_ = &add("head", make_head(family_, width, config.classes, head_stream));
}

Variable Vit::prepend_class_token(const Variable& tokens) const {
  const std::int64_t batch = tokens.size(0), width = tokens.size(2);
  const Variable token = reshape(cls_token_->variable, {1, 1, -1, 1});
  const Variable repeated = expand(token, {batch, 1, width / family_.order(), family_.order()});
  return concat({reshape(repeated, {batch, 1, width}), tokens}, 1);
}

Variable Vit::forward(const Variable& images) {
  Variable x = widen((*patch_embed_)(images));
  if (cls_token_) x = prepend_class_token(x);
  x = (*pos_drop_)((*pos_embed_)(x));
  for (Module* block : blocks_) x = (*block)(x);
  x = (*norm_)(x);
  return classify(*head_, family_, cls_token_ ? select(x, 1, 0) : mean(x, {1}));
}

std::string Vit::describe() const {
  const ModelConfig& c = config();
  return fmt::format("{}x{}x{}, patch {}, width {}, depth {}, heads {}, {} classes, group {}", c.in_channels,
                     c.image_size, c.image_size, c.patch_size, c.width, c.depth, c.heads, c.classes, c.group);
}

}  // namespace gyre
