#include "layers/block.h"

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/mlp.h"
#include "layers/window_attention.h"

namespace gyre {

namespace {

std::unique_ptr<Module> make_attention(const LayerFamily& family, const BlockConfig& config,
                                       RandomStream& stream) {
  if (config.windows)
    return std::make_unique<WindowAttention>(family, config.width, config.heads, *config.windows, stream);
  return std::make_unique<Attention>(family, config.width, config.heads, stream);
}

}  // namespace

Block::Block(const LayerFamily& family, const BlockConfig& config, RandomStream& stream)
    : equivariant_(family.equivariant()),
      norm1_(&add("norm1", family.norm(config.width, true))),
      attn_(&add("attn", make_attention(family, config, stream))),
      drop_(&add<Dropout>("drop", config.dropout, family.order(), config.first_site)),
      drop_path1_(&add<DropPath>("drop_path1", config.drop_path, config.first_site + 1)),
      norm2_(&add("norm2", family.norm(config.width, true))),
      mlp_(&add<Mlp>("mlp", family, config.width, config.hidden, config.dropout, config.first_site + 2,
                     stream)),
      drop_path2_(&add<DropPath>("drop_path2", config.drop_path, config.first_site + 4)) {}

Variable Block::forward(const Variable& x) {
  const auto [same, first] = norm1_->add_forward(x);
  const auto [y, second] = norm2_->add_forward(same, (*drop_path1_)((*drop_)((*attn_)(first))));
  return y + widen((*drop_path2_)((*mlp_)(second)));
}

}  // namespace gyre
