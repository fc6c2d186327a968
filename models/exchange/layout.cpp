#include "models/exchange/layout.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/safetensors_header.h"
#include "core/words.h"
#include "models/exchange/forms.h"

namespace gyre {

namespace exchange {

Forms own_forms(Model& model) {
  Forms forms;
  for (const auto& [name, parameter] : model.parameters())
    forms[name] = {{.name = name, .shape = parameter->variable.shape()}};
  return forms;
}

}  // namespace exchange

namespace {

using exchange::Form;
using exchange::Forms;

constexpr Layout layouts[] = {Layout::gyre, Layout::timm, Layout::released};

/// True for what other programs store beside weights and can compute anew.
bool is_buffer(std::string_view name) {
  return name.ends_with(".relative_position_index") || name.ends_with(".attn_mask") ||
         name.ends_with(".basis");
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  for (const std::int64_t extent : shape)
    if (extent != 1) rest.push_back(extent);
  return rest;
}

bool fits(const Form& form, const Shape& shape) {
  return shape == form.shape || (form.loose && without_ones(shape) == without_ones(form.shape));
}

std::string shapes_of(const std::vector<Form>& forms, const std::string& name) {
  std::string text;
  for (const Form& form : forms)
    if (form.name == name) text += fmt::format("{}{}", text.empty() ? "" : " or ", form.shape);
  return text;
}

Forms forms_for(Model& model, Layout layout, const TensorMap* file) {
  switch (layout) {
    case Layout::gyre: return exchange::own_forms(model);
    case Layout::released: return exchange::released_forms(model);
    case Layout::timm: break;
  }
  // The first stage has patch merging at its start in no file, at its end in older ones.
  const auto old = [](const auto& entry) { return entry.first.starts_with("layers.0.downsample."); };
  return exchange::timm_forms(model, !file || std::none_of(file->begin(), file->end(), old));
}

/// What a conversion did to the tensors that it changed.
struct Loss {
  std::int64_t tensors = 0;
  double largest = 0, squares = 0, all = 0;
  bool measured = false;

  /// Leaves out a tensor that comes back bit for bit.
  void add(const Tensor& file, const Tensor& kept) {
    const float* x = file.data<float>();
    const float* y = kept.data<float>();
    measured = true;
    if (std::equal(x, x + file.numel(), y)) return;
    ++tensors;
    for (std::int64_t i = 0; i < file.numel(); ++i) {
      const double change = std::abs(double{x[i]} - double{y[i]});
      largest = std::max(largest, change);
      squares += change * change;
      all += double{x[i]} * double{x[i]};
    }
  }
  std::string str(std::string_view conversion) const {
    std::string text = fmt::format("{} tensor{} {}", tensors, tensors == 1 ? "" : "s", conversion);
    if (measured)
      text += fmt::format(": lost {:.2e} of their norm, {:.2e} at most in one value",
                          all > 0 ? std::sqrt(squares / all) : 0.0, largest);
    return text;
  }
};

class Importer {
 public:
  Importer(const TensorMap& file, Model& model, Layout layout)
      : file_(file), model_(model), layout_(layout), forms_(forms_for(model, layout, &file)) {}

  ImportedWeights run() {
    for (const auto& [own, forms] : forms_) read(own, forms);
    refuse_unknown();
    for (const auto& [conversion, loss] : losses_)
      if (loss.tensors > 0) result_.notes.push_back(loss.str(conversion));
    if (ignored_ > 0)
      result_.notes.push_back(
          fmt::format("{} buffer{} left out: computed here", ignored_, ignored_ == 1 ? "" : "s"));
    return std::move(result_);
  }

 private:
  void read(const std::string& own, const std::vector<Form>& forms) {
    const std::string* name = nullptr;
    for (const Form& form : forms) {
      if (!file_.contains(form.name) || (name && *name == form.name)) continue;
      require<ValueError>(!name, "tensors {} and {} stand for the same weights",
                          name ? quoted_name(*name) : "", quoted_name(form.name));
      name = &form.name;
    }
    const Shape shape = model_shape(own);
    if (!name)
      throw ValueError(fmt::format("no tensor {}, expected with shape {} ({} in layout {})",
                                   quoted_name(forms.front().name), shapes_of(forms, forms.front().name),
                                   model_.config().name, name_of(layout_)));
    used_.insert(*name);
    const Tensor& tensor = file_.at(*name);
    if (!is_floating(tensor.dtype()))
      throw ValueError(fmt::format("tensor {} is {}, expected F32, F64, F16 or BF16", quoted_name(*name),
                                   safetensors_type(tensor.dtype())));
    for (const Form& form : forms) {
      if (form.name != *name || !fits(form, tensor.shape())) continue;
      result_.weights.emplace(own,
                              convert(form, tensor.to(DType::f32).contiguous().reshape(form.shape), shape));
      return;
    }
    throw ValueError(fmt::format("tensor {} has shape {}, expected {}", quoted_name(*name), tensor.shape(),
                                 shapes_of(forms, *name)));
  }

  Shape model_shape(const std::string& own) {
    if (shapes_.empty())
      for (const auto& [name, parameter] : model_.parameters()) shapes_[name] = parameter->variable.shape();
    return shapes_.at(own);
  }

  Tensor convert(const Form& form, const Tensor& stored, const Shape& shape) {
    Tensor own = form.read ? form.read(stored) : stored.reshape(shape);
    if (!form.conversion.empty()) {
      Loss& loss = losses_[std::string(form.conversion)];
      if (form.write) {
        loss.add(stored, form.write(own));
      } else {
        ++loss.tensors;
      }
    }
    return own;
  }

  void refuse_unknown() {
    for (const auto& [name, tensor] : file_) {
      if (used_.contains(name)) continue;
      if (layout_ != Layout::gyre && is_buffer(name)) {
        ++ignored_;
        continue;
      }
      throw ValueError(fmt::format("tensor {} of shape {} is not part of {} in layout {}", quoted_name(name),
                                   tensor.shape(), model_.config().name, name_of(layout_)));
    }
  }

  const TensorMap& file_;
  Model& model_;
  Layout layout_;
  Forms forms_;
  ImportedWeights result_;
  std::set<std::string> used_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, Loss> losses_;
  std::int64_t ignored_ = 0;
};

}  // namespace

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::gyre: return "gyre";
    case Layout::timm: return "timm";
    case Layout::released: break;
  }
  return "released";
}

Layout parse_layout(std::string_view name) {
  for (const Layout layout : layouts)
    if (name == name_of(layout)) return layout;
  throw ValueError(fmt::format("layout '{}': expected gyre, timm or released", name));
}

Layout detect_layout(const TensorMap& file, const ModelConfig& config) {
  if (!is_equivariant(config)) return Layout::timm;
  const bool released = std::any_of(file.begin(), file.end(), [](const auto& entry) {
    const std::string& name = entry.first;
    return name.ends_with(".weights") || name.ends_with(".c") || name == "pos_embed_weights";
  });
  return released ? Layout::released : Layout::gyre;
}

ImportedWeights import_weights(const TensorMap& file, Model& model, Layout layout) {
  return Importer(file, model, layout).run();
}

TensorMap export_weights(Model& model, Layout layout) {
  if (layout == Layout::timm && is_equivariant(model.config())) return exchange::written_out(model);
  TensorMap file;
  const TensorMap state = model.state();
  for (const auto& [own, forms] : forms_for(model, layout, nullptr)) {
    const Form& form = forms.front();
    const Tensor tensor = state.at(own).to(DType::f32).contiguous();
    file.emplace(form.name, form.write ? form.write(tensor) : tensor.reshape(form.shape));
  }
  return file;
}

ModelConfig config_in(ModelConfig config, Layout layout) {
  const bool written_out = layout == Layout::timm && is_equivariant(config);
  return written_out ? ordinary_twin(std::move(config)) : config;
}

std::optional<std::int64_t> classes_in(const TensorMap& file) {
  for (const char* name : {"head.fc.weight", "head.weight", "head.weights"}) {
    const auto found = file.find(name);
    if (found != file.end() && found->second.rank() == 2 && found->second.size(0) > 0)
      return found->second.size(0);
  }
  return std::nullopt;
}

}  // namespace gyre
