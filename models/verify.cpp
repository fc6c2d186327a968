#include "models/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/group_action.h"
#include "core/random.h"
#include "layers/eq_linear.h"
#include "layers/equivariance.h"
#include "models/counting.h"

namespace gyre {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// A layer with what it met inside the model.
struct Met {
  std::string name;
  Module* module;
  Tensor input;
};

/// Of each kind and size of equivariant layer the first and the last, in the order of the model.
std::vector<Met> meet_layers(Model& model, const Tensor& images) {
  std::map<const Module*, std::string> names;
  for (const auto& [name, module] : model.modules()) names[module] = name;
  std::map<std::string, std::pair<std::size_t, std::optional<std::size_t>>> seen;
  std::vector<Met> layers;
  const ForwardObserver observer([&](Module& module, const Variable& x, const Variable&) {
    if (&module == &model || !module.kind().starts_with("Eq")) return;
    const std::string key = fmt::format("{} {} {}", module.kind(), module.describe(), x.shape());
    const Met met{names.at(&module), &module, x.data()};
    const auto [place, first] = seen.try_emplace(key, layers.size(), std::nullopt);
    if (first || !place->second.second) {
      if (!first) place->second.second = layers.size();
      layers.push_back(met);
    } else {
      layers[*place->second.second] = met;
    }
  });
  model(Variable(images));
  return layers;
}

/// What the values of a layer mean; nothing where they are not images or tokens of a square grid.
std::optional<Meaning> meaning_of(const Shape& shape, const ModelConfig& config) {
  if (shape.rank() == 4) return Meaning::image();
  if (shape.rank() != 3) return std::nullopt;
  const int grid = static_cast<int>(grid_of(config));
  const std::int64_t tokens = shape[1];
  if (tokens == tokens_of(config)) return Meaning::tokens(grid, grid, config.pool == "token" ? 1 : 0);
  for (int side = grid; side >= 1; side /= 2) {
    if (tokens == std::int64_t{side} * side) return Meaning::tokens(side, side);
  }
  return std::nullopt;
}

/// Results of one layer, by the names of the paper.
using LayerRun = std::vector<std::pair<std::string, Tensor>>;

LayerRun run_layer(Module& layer, const Tensor& input, std::uint64_t seed) {
  layer.zero_grad();
  const Variable x(input, true);
  const Variable y = layer(x);
  RandomStream stream(seed, Purpose::test, 1);
  y.backward(random_normal(y.shape(), 1, stream, y.dtype()).to(input.device()));
  LayerRun run{{"Y", y.data()}, {"dX", x.grad()}};
  for (const auto& [name, parameter] : layer.parameters())
    run.emplace_back(name.ends_with("bias") ? "db" : "dW", parameter->variable.grad());
  layer.zero_grad();
  return run;
}

/// The two implementations of a layer's product, on the same input.
std::vector<ExactnessRow> compare_backends(const Met& met, EqProduct& product, std::uint64_t seed) {
  const kernels::EqBackend own = product.options().backend;
  const auto run_with = [&](kernels::EqBackend backend) {
    product.set_backend(backend);
    return run_layer(*met.module, met.input, seed);
  };
  const LayerRun naive = run_with(kernels::EqBackend::naive), flash = run_with(kernels::EqBackend::flash);
  product.set_backend(own);
  std::vector<ExactnessRow> rows;
  for (std::size_t i = 0; i < naive.size(); ++i) {
    const auto& [tensor, reference] = naive[i];
    const TensorError error = tensor_error(flash[i].second, reference, tensor == "Y" ? 0.1 : 1e-3);
    const DType dtype = met.input.dtype();
    rows.push_back({tensor, met.name, dtype, error, error.rel_l2 <= exactness_mark(dtype)});
  }
  return rows;
}

/// Images moved one pixel to the right, the last column first: no symmetry of any group here.
Tensor shifted(const Tensor& images) {
  Tensor result = Tensor::empty(images.shape(), images.dtype(), images.device());
  const std::int64_t side = images.size(3);
  result.slice(3, 1, side).copy_(images.slice(3, 0, side - 1));
  result.slice(3, 0, 1).copy_(images.slice(3, side - 1, side));
  return result;
}

std::int64_t default_samples(const ModelConfig& config) {
  constexpr std::int64_t flops = 20'000'000'000;
  return std::clamp<std::int64_t>(flops / std::max<std::int64_t>(1, count_model(config).executed_flops), 1,
                                  8);
}

/// Elements to try: all but the unit, where nothing can go wrong.
std::vector<int> elements_of(const Group& group) {
  std::vector<int> elements;
  for (int g = group.order() > 1 ? 1 : 0; g < group.order(); ++g) elements.push_back(g);
  return elements;
}

/// One pass over a model in the type of its parameters.
class Verification {
 public:
  Verification(Model& model, const Group& group, const VerifyOptions& options, VerifyResult& result)
      : model_(model),
        group_(group),
        options_(options),
        result_(result),
        dtype_(model.parameters().front().parameter->variable.dtype()) {
    const ModelConfig& config = model.config();
    RandomStream stream(options.seed, Purpose::test);
    images_ =
        random_normal({result.samples, config.in_channels, config.image_size, config.image_size}, 1, stream)
            .to(dtype_)
            .to(model.device());
  }

  void run() {
    tell("layers", 0);
    std::vector<Met> layers;
    {
      const NoGrad no_grad;
      layers = meet_layers(model_, images_);
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      tell(layers[i].name, 0.3 * static_cast<double>(i) / static_cast<double>(layers.size()));
      if (auto* product = dynamic_cast<EqProduct*>(layers[i].module)) add_exactness(layers[i], *product);
      if (is_equivariant(model_.config())) add_layer(layers[i]);
    }
    layers.clear();
    add_model();
  }

 private:
  void tell(std::string_view task, double fraction) const {
    if (options_.progress) options_.progress(fmt::format("{} {}", dtype_, task), fraction);
  }

  void add_exactness(const Met& met, EqProduct& product) {
    if (dtype_ == DType::f32) ++result_.layers;
    for (ExactnessRow& row : compare_backends(met, product, options_.seed)) {
      const auto same = std::find_if(result_.exactness.begin(), result_.exactness.end(), [&](const auto& r) {
        return r.tensor == row.tensor && r.dtype == row.dtype;
      });
      if (same == result_.exactness.end())
        result_.exactness.push_back(std::move(row));
      else if (!(row.error.rel_l2 <= same->error.rel_l2))
        *same = std::move(row);
    }
  }

  void add_layer(const Met& met) {
    const NoGrad no_grad;
    const Tensor y = (*met.module)(Variable(met.input)).data();
    const auto input = meaning_of(met.input.shape(), model_.config());
    const auto output = meaning_of(y.shape(), model_.config());
    if (!input || !output) return;
    for (const int g : elements_of(group_)) {
      const Tensor moved = (*met.module)(Variable(act(group_, g, met.input, *input))).data();
      keep_worst(std::string(met.module->kind()), name_of(g),
                 equivariance_error(g, moved, act(group_, g, y, *output)));
    }
  }

  void add_model() {
    const NoGrad no_grad;
    const Group& d4 = Group::get("d4");
    std::vector<int> outside;
    for (int g = 0; g < d4.order(); ++g) {
      bool inside = false;
      for (int t = 0; t < group_.order(); ++t) inside = inside || group_.image_element(t) == g;
      if (!inside) outside.push_back(g);
    }
    const std::vector<int> elements = elements_of(group_);
    const double steps = static_cast<double>(elements.size() + std::max<std::size_t>(1, outside.size()) + 1);
    double done = 0;
    const auto logits = [&](const Tensor& images, const std::string& what) {
      tell("model, " + what, 0.3 + 0.7 * done++ / steps);
      return model_(Variable(images)).data();
    };
    const Tensor upright = logits(images_, "upright");
    for (const int g : elements)
      keep_worst("model", name_of(g),
                 equivariance_error(g, logits(act_on_image(group_, g, images_), name_of(g)), upright));
    for (const int g : outside) {
      const Tensor moved = logits(act_on_image(d4, g, images_), element_name(g));
      keep_worst("outside", element_name(g), equivariance_error(g, moved, upright));
    }
    if (outside.empty())
      keep_worst("outside", "shift by a pixel",
                 equivariance_error(0, logits(shifted(images_), "shift"), upright));
  }

  std::string name_of(int g) const { return element_name(group_.image_element(g)); }

  EquivarianceRow make_row(std::string scope, std::string element, const EquivarianceError& error) const {
    const bool pass = scope == "outside" ? error.nmae >= outside_mark && std::isfinite(error.nmae)
                                         : error.nmae <= equivariance_mark(scope, dtype_);
    return {std::move(scope), std::move(element), dtype_, error.nmae, error.rel_l2, pass};
  }

  /// One row per scope, element and type.
  void keep_worst(const std::string& scope, const std::string& element, const EquivarianceError& error) {
    auto& rows = result_.equivariance;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const EquivarianceRow& row) {
      return row.scope == scope && row.element == element && row.dtype == dtype_;
    });
    if (same == rows.end())
      rows.push_back(make_row(scope, element, error));
    else if (!(error.nmae <= same->nmae))
      *same = make_row(scope, element, error);
  }

  Model& model_;
  const Group& group_;
  const VerifyOptions& options_;
  VerifyResult& result_;
  DType dtype_;
  Tensor images_;
};

}  // namespace

TensorError tensor_error(const Tensor& value, const Tensor& reference, double floor) {
  require_shape(value, reference.shape(), "tensor_error");
  const std::vector<double> a = value.to_vector(), b = reference.to_vector();
  TensorError error;
  double error2 = 0, norm2 = 0;
  std::vector<double> relative;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]), size = std::abs(b[i]);
    error2 += difference * difference;
    norm2 += size * size;
    error.max_abs = std::max(error.max_abs, difference);
    error.mean_abs += difference / static_cast<double>(b.size());
    if (size > floor) relative.push_back(difference / size);
  }
  error.rel_l2 = norm2 > 0 && std::isfinite(error2) ? std::sqrt(error2 / norm2) : infinite;
  error.p99_rel = std::numeric_limits<double>::quiet_NaN();
  if (!relative.empty()) {
    const auto place = relative.begin() + static_cast<std::ptrdiff_t>((relative.size() - 1) * 99 / 100);
    std::nth_element(relative.begin(), place, relative.end());
    error.p99_rel = *place;
  }
  return error;
}

double exactness_mark(DType dtype) { return dtype == DType::f64 ? 1e-12 : 1e-6; }

double equivariance_mark(std::string_view scope, DType dtype) {
  if (dtype != DType::f64) return 1e-5;
  return scope == "model" ? 1e-10 : 1e-12;
}

std::string element_name(int d4_element) {
  const int turns = d4_element % 4;
  std::string name = d4_element >= 4 ? "mirror" : "";
  if (turns > 0) name += fmt::format("{}turn {}", name.empty() ? "" : ", ", 90 * turns);
  return name.empty() ? "none" : name;
}

bool VerifyResult::pass() const {
  const auto passes = [](const auto& row) { return row.pass; };
  return std::all_of(exactness.begin(), exactness.end(), passes) &&
         std::all_of(equivariance.begin(), equivariance.end(), passes);
}

VerifyResult verify_model(Model& model, const VerifyOptions& options) {
  const ModelConfig& config = model.config();
  const Group& group = is_equivariant(config) ? group_of(config) : Group::get("c4");
  VerifyResult result;
  result.group = group.name();
  result.samples = options.samples > 0 ? options.samples : default_samples(config);
  model.eval();
  Verification(model, group, options, result).run();
  model.to(DType::f64);
  Verification(model, group, options, result).run();
  return result;
}

}  // namespace gyre
