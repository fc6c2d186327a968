#include <cstddef>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/group_action.h"
#include "models/exchange/forms.h"

namespace gyre::exchange {

namespace {

constexpr std::int64_t turns = 4;

/// The filter of a convolution by columns, [C, in, 1, k·k] with w[i][j] = v[j·k + i] ↔ [C, in, k, k].
Form filter_form(const std::string& name, const Shape& own) {
  const Shape stored{own[0], own[1], 1, own[2] * own[3]};
  return {.name = name,
          .shape = stored,
          .read = [own](const Tensor& v) { return v.reshape(own).transpose(2, 3).contiguous(); },
          .write = [stored](const Tensor& w) { return w.transpose(2, 3).contiguous().reshape(stored); }};
}

/// The weight of an EQ-Linear, [D, 1, C, 4] with the same order of indices.
Form weight_form(const std::string& name, const Shape& own) {
  return {.name = name, .shape = {own[0], 1, own[1], turns}};
}

/// The frequency planes [D, C, 4] of the index-reversed weight (docs/math.md section 3).
Form planes_form(const std::string& name, const Shape& own) {
  const auto each = [](const Tensor& from, auto&& f) {
    Tensor to = Tensor::empty(from.shape());
    const float* x = from.data<float>();
    float* y = to.mutable_data<float>();
    for (std::int64_t i = 0; i < from.numel(); i += turns) f(x + i, y + i);
    return to;
  };
  const auto read = [each](const Tensor& planes) {
    return each(planes, [](const float* p, float* w) {
      const double even = (double{p[0]} + p[2]) / 4, odd = (double{p[0]} - p[2]) / 4;
      w[0] = static_cast<float>(even + p[1] / 2.0);
      w[1] = static_cast<float>(odd + p[3] / 2.0);
      w[2] = static_cast<float>(even - p[1] / 2.0);
      w[3] = static_cast<float>(odd - p[3] / 2.0);
    });
  };
  return {.name = name,
          .shape = own,
          .read = read,
          .conversion = "of frequency planes, turned back to rounding (not bit for bit)"};
}

/// The 2×2 filter of patch merging by columns, [D, C, 4, 4] with w_r[i][j] = v[r][2j + i] ↔ the weight
/// [D, 4·C, 4] of an EQ-Linear over the orbit of pixels p_d: W[4c + d, r] = w_{c,r}(r·p_d).
Form merging_form(const std::string& name, const Shape& own) {
  const Shape stored{own[0], own[1] / turns, turns, turns};
  // Where the 16 values of one (D, C) go: [d][r] → [r][2·col + row].
  const auto place = [](int d, int r) {
    static constexpr Pixel around[] = {{0, 0}, {0, 1}, {1, 1}, {1, 0}};
    const Pixel p = act_on_pixel(Group::get("c4"), r, around[d], 2, 2);
    return std::pair(d * 4 + r, r * 4 + 2 * p.col + p.row);
  };
  const auto move = [place](const Tensor& from, const Shape& shape, bool reading) {
    Tensor to = Tensor::empty(shape);
    const float* x = from.data<float>();
    float* y = to.mutable_data<float>();
    for (std::int64_t i = 0; i < from.numel(); i += turns * turns) {
      for (int d = 0; d < turns; ++d) {
        for (int r = 0; r < turns; ++r) {
          const auto [ours, theirs] = place(d, r);
          if (reading) {
            y[i + ours] = x[i + theirs];
          } else {
            y[i + theirs] = x[i + ours];
          }
        }
      }
    }
    return to;
  };
  return {.name = name,
          .shape = stored,
          .read = [move, own](const Tensor& v) { return move(v, own, true); },
          .write = [move, stored](const Tensor& w) { return move(w, stored, false); }};
}

/// Gain or bias of a norm that is not tied over the group, [C·T] ↔ [C].
Form untied_form(const std::string& name, const Shape& own) {
  const std::int64_t channels = own[0];
  const auto read = [channels](const Tensor& v) {
    Tensor mean = Tensor::empty({channels});
    const float* x = v.data<float>();
    float* y = mean.mutable_data<float>();
    for (std::int64_t c = 0; c < channels; ++c, x += turns)
      y[c] = static_cast<float>((double{x[0]} + x[1] + x[2] + x[3]) / turns);
    return mean;
  };
  const auto write = [channels](const Tensor& w) {
    return w.unsqueeze(1).expand({channels, turns}).contiguous().reshape({channels * turns});
  };
  return {.name = name,
          .shape = {channels * turns},
          .read = read,
          .write = write,
          .conversion = "not tied over the group, averaged"};
}

}  // namespace

Forms released_forms(Model& model) {
  const ModelConfig& config = model.config();
  require<ValueError>(is_equivariant(config), "layout released holds equivariant models, and {} is ordinary",
                      config.name);
  require<ValueError>(config.group == "c4", "layout released holds models of the group c4, not {}",
                      config.group);
  const bool swin = family_of(config.name) == "eq_swin";
  require<ValueError>(swin || config.pos_embed == "quarter",
                      "layout released has the quarter position table only, and pos_embed is {}",
                      config.pos_embed);
  Forms forms = own_forms(model);
  std::set<std::string> merging;
  for (const auto& [name, module] : model.modules()) {
    const std::string_view kind = module->kind();
    // Replaces the forms of a parameter of this module; `make` maps its shape.
    const auto set = [&, prefix = name](const std::string& parameter, auto&&... make) {
      const auto found = forms.find(prefix + parameter);
      if (found == forms.end()) return;  // a layer without bias
      const Shape shape = found->second.front().shape;
      found->second = {make(shape)...};
    };
    const auto under = [&](const std::string& own, auto form) {
      return [=](const Shape& shape) { return form(own, shape); };
    };
    const auto vector = [&](const std::string& own, int ones_before, int ones_behind) {
      return [=](const Shape& shape) {
        Form form{.name = own, .shape = {}, .loose = true};
        for (int i = 0; i < ones_before; ++i) form.shape.push_back(1);
        form.shape.push_back(shape[0]);
        for (int i = 0; i < ones_behind; ++i) form.shape.push_back(1);
        return form;
      };
    };
    if (kind == "EqPatchMerging") merging.insert(name + ".reduction");
    if (kind == "EqLinear" && merging.contains(name)) {
      set(".weight", under(name + ".weight", merging_form));
      set(".bias", vector(name + ".bias", 0, 0));
    } else if (kind == "EqLinear") {
      set(".weight", under(name + ".weights", weight_form), under(name + ".weights", planes_form));
      set(".bias", vector(name + ".c", 0, 1));
    } else if (kind == "EqPatchEmbed") {
      set(".proj.weight", under(name + ".proj.weight", filter_form));
      set(".proj.bias", vector(name + ".proj.bias", 0, 0), vector(name + ".proj.c", 0, 0));
    } else if (kind == "EqPositionTable") {
      set("", [&](const Shape& shape) {
        const std::int64_t half = grid_of(config) / 2;
        return Form{.name = "pos_embed_weights", .shape = {1, half, half, shape[1]}};
      });
      set(".cls", vector("cls_pos_embed", 2, 0));
    } else if (kind == "EqLayerNorm") {
      for (const std::string part : {".weight", ".bias"}) {
        if (swin) {
          set(part, under(name + part, untied_form), vector(name + part, 0, 0));
        } else {
          set(part, vector(name + part, 0, 0), under(name + part, untied_form));
        }
      }
    } else if (name.empty()) {
      set("cls_token", vector("cls_token", 2, 0));
    } else if (name == "head.fc") {
      set(".weight", [](const Shape& shape) { return Form{.name = "head.weights", .shape = shape}; });
      set(".bias", vector("head.bias", 0, 0));
    }
  }
  for (auto& [own, list] : forms)
    for (Form& form : list) form.name = merging_at_end(form.name);
  return forms;
}

}  // namespace gyre::exchange
