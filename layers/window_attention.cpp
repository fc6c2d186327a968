#include "layers/window_attention.h"

#include <array>

#include "autograd/autocast.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/shape.h"
#include "kernels/gather.h"
#include "kernels/reduce.h"
#include "kernels/types.h"
#include "layers/initialise.h"

namespace gyre {

namespace {

/// rows [heads, places], averaged over the turns of each place; `turned` [T·places] may be undefined.
Tensor averaged(const Tensor& rows, const Tensor& turned) {
  if (!turned.defined()) return rows;
  const std::int64_t places = rows.size(1);
  const Tensor all = kernels::gather(rows, turned).reshape({rows.size(0), turned.numel() / places, places});
  return kernels::mean(all, std::array{1}, false);
}

}  // namespace

WindowAttention::WindowAttention(const LayerFamily& family, std::int64_t width, std::int64_t heads,
                                 const WindowConfig& windows, RandomStream& stream)
    : equivariant_(family.equivariant()),
      width_(width),
      heads_(heads),
      windows_(windows),
      order_(window_order(windows)),
      inverse_(inverse_order(order_)),
      relative_(relative_index(windows.window)) {
  require<ShapeError>(heads > 0 && width % (heads * family.order()) == 0,
                      "attention: width {} does not split into {} heads of whole orbits of {}", width, heads,
                      family.order());
  if (family.order() > 1) turned_ = turned_offsets(*family.group, windows.window);
  for (Tensor* index : {&order_, &inverse_, &relative_, &turned_}) add_constant(*index);
  const std::int64_t side = 2 * windows.window - 1;
  table_ = &add_parameter("relative_position_bias_table",
                          Initialiser::truncated_normal()({side * side, heads}, stream), false);
  qkv_ = &add("qkv", family.linear(width, 3 * width, stream));
  proj_ = &add("proj", family.linear(width, width, stream));
}

Variable WindowAttention::bias() {
  const Variable& table = table_->variable;
  if (!bias_.defined() || bias_from_ != table.data().version()) {
    const Tensor rows = averaged(table.data().transpose(0, 1).contiguous(), turned_);
    bias_ = kernels::gather(rows, relative_).reshape({heads_, windows_.area(), windows_.area()});
    bias_from_ = table.data().version();
  }
  return make_result("relative_bias", bias_, {table},
                     [heads = heads_, places = table.size(0), relative = relative_,
                      turned = turned_](const Tensor& grad) -> Gradients {
                       const Tensor flat = grad.reshape({heads, relative.numel()});
                       const Tensor rows = kernels::gather_backward(flat, relative, places);
                       // The average over a group is its own adjoint.
                       return {averaged(rows, turned).transpose(0, 1)};
                     });
}

Variable WindowAttention::forward(const Variable& x) {
  require<ShapeError>(x.rank() == 3 && x.size(1) == windows_.grid * windows_.grid && x.size(2) == width_,
                      "{} takes [batch, {}, {}], not {}", kind(), windows_.grid * windows_.grid, width_,
                      x.shape());
  const DType wide = kernels::wide_type(x.dtype());
  if (windows_.shift > 0 && (!mask_.defined() || mask_.dtype() != wide || mask_.device() != x.device()))
    mask_ = window_mask(windows_, wide).to(x.device());
  const std::int64_t batch = x.size(0), count = windows_.windows(), area = windows_.area();
  const Variable inside = permute_rows(autocast(x), order_, inverse_);
  const Variable qkv = reshape((*qkv_)(inside), {batch * count, area, 3, heads_, width_ / heads_});
  const Variable y = reshape(attention(qkv, bias(), mask_), {batch, count * area, width_});
  return permute_rows((*proj_)(y), inverse_, order_);
}

std::string WindowAttention::describe() const {
  return fmt::format("{} heads of {}, window {}{}", heads_, width_ / heads_, windows_.window,
                     windows_.shift > 0 ? fmt::format(", shift {}", windows_.shift) : "");
}

}  // namespace gyre
