#include "layers/attention.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/shape.h"

namespace gyre {

Attention::Attention(const LayerFamily& family, std::int64_t width, std::int64_t heads, RandomStream& stream)
    : equivariant_(family.equivariant()), width_(width), heads_(heads) {
  require<ShapeError>(heads > 0 && width % (heads * family.order()) == 0,
                      "attention: width {} does not split into {} heads of whole orbits of {}", width, heads,
                      family.order());
  qkv_ = &add("qkv", family.linear(width, 3 * width, stream));
  proj_ = &add("proj", family.linear(width, width, stream));
}

Variable Attention::forward(const Variable& x) {
  require<ShapeError>(x.rank() == 3, "{} takes [batch, tokens, width], not {}", kind(), x.shape());
  const Variable qkv = (*qkv_)(x);
  const Variable heads = reshape(qkv, {x.size(0), x.size(1), 3, heads_, width_ / heads_});
  return (*proj_)(attention(heads));
}

std::string Attention::describe() const { return fmt::format("{} heads of {}", heads_, width_ / heads_); }

}  // namespace gyre
