#include "core/error.h"
#include "core/group_action.h"
#include "models/exchange/forms.h"

namespace gyre::exchange {

namespace {

/// Each value of [..., n] T times in a row: [..., n·T].
Tensor over_group(const Tensor& x, std::int64_t order) {
  Shape repeated = x.shape(), joined = x.shape();
  repeated.push_back(order);
  joined[-1] *= order;
  return x.unsqueeze(-1).expand(repeated).contiguous().reshape(joined);
}

/// W [D, C, T] as the matrix [D·T, C·T] of docs/math.md section 2.
Tensor dense_matrix(const Group& group, const Tensor& w) {
  const std::int64_t order = group.order();
  Tensor dense = Tensor::empty({w.size(0), order, w.size(1), order});
  for (int t = 0; t < order; ++t)
    for (int s = 0; s < order; ++s)
      dense.select(3, s).select(1, t).copy_(w.select(2, group.mul(group.inv(t), s)));
  return dense.reshape({w.size(0) * order, w.size(1) * order});
}

/// The filters t·w of every orientation: [C, in, k, k] → [C·T, in, k, k].
Tensor turned_filters(const Group& group, const Tensor& w) {
  const std::int64_t order = group.order();
  Tensor all = Tensor::empty({w.size(0), order, w.size(1), w.size(2), w.size(3)});
  for (int t = 0; t < order; ++t) all.select(1, t).copy_(act_on_image(group, t, w));
  return all.reshape({w.size(0) * order, w.size(1), w.size(2), w.size(3)});
}

}  // namespace

TensorMap written_out(Model& model) {
  const ModelConfig& config = model.config();
  require<ValueError>(family_of(config.name) == "eq_vit",
                      "layout timm holds ordinary models, and {} cannot be written out as one", config.name);
  const Group& group = group_of(config);
  const std::int64_t order = group.order();
  TensorMap plain;
  const TensorMap state = model.state();
  for (const auto& [name, module] : model.modules()) {
    const std::string_view kind = module->kind();
    if (kind == "EqLinear") {
      plain[name + ".weight"] = dense_matrix(group, state.at(name + ".weight"));
      plain[name + ".bias"] = over_group(state.at(name + ".bias"), order);
    } else if (kind == "EqLayerNorm") {
      for (const char* part : {".weight", ".bias"})
        plain[name + part] = over_group(state.at(name + part), order);
    } else if (kind == "EqPatchEmbed") {
      plain[name + ".proj.weight"] = turned_filters(group, state.at(name + ".proj.weight"));
      plain[name + ".proj.bias"] = over_group(state.at(name + ".proj.bias"), order);
    } else if (kind == "EqPositionTable") {
      plain[name] = module->forward(Variable(Tensor::zeros({1, tokens_of(config), config.width}))).data();
    }
  }
  if (const auto token = state.find("cls_token"); token != state.end())
    plain["cls_token"] = over_group(token->second, order).reshape({1, 1, config.width});
  // The head reads the sum over the group.
  plain["head.weight"] = over_group(state.at("head.weight"), order);
  plain["head.bias"] = state.at("head.bias");
  return plain;
}

}  // namespace gyre::exchange
