#include "models/model_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/words.h"
#include "models/named_sizes.h"

namespace gyre {

namespace {

constexpr std::string_view families[] = {"vit", "eq_vit", "swin", "eq_swin"};

/// Sets a field that the user left alone.
template <class Value>
void fill(ModelConfig& config, std::string_view key, Value ModelConfig::*field, Value value) {
  static const ModelConfig defaults;
  if (config.given.contains(key) || config.*field != defaults.*field) return;
  config.*field = std::move(value);
}

/// The family of the same attention, all sizes kept.
ModelConfig twin(ModelConfig config, bool equivariant) {
  config = resolve(std::move(config));
  const bool changes = is_equivariant(config) != equivariant;
  config.name = fmt::format("{}{}", equivariant ? "eq_" : "", is_swin(config) ? "swin" : "vit");
  config.given = {"image_size", "in_channels", "patch_size", "width",   "depth",
                  "depths",     "heads",       "window",     "classes", "approximate",
                  "group",      "pos_embed",   "pool",       "backend", "products"};
  if (changes) {
    const ModelConfig defaults;
    config.group = equivariant ? defaults.group : "c1";
    config.products = 0;
    if (!is_swin(config)) config.pos_embed = "full";
    config.approximate = equivariant && !is_exact(config);
  }
  return config;
}

}  // namespace

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names(std::begin(families), std::end(families));
  for (const NamedSize& size : named_sizes()) names.push_back(size.name);
  return names;
}

std::string_view family_of(std::string_view name) {
  for (const std::string_view family : families)
    if (name == family) return family;
  if (const NamedSize* size = find_named_size(name)) return size->family;
  const std::vector<std::string_view> names = model_names();
  const auto nearest = std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return edit_distance(a, name) < edit_distance(b, name);
  });
  throw ValueError(fmt::format("unknown model \"{}\", did you mean \"{}\"? Known are {}", name, *nearest,
                               fmt::join(names, ", ")));
}

ModelConfig resolve(ModelConfig config) {
  const std::string_view family = family_of(config.name);
  const bool swin = family.ends_with("swin"), equivariant = family.starts_with("eq_");
  if (!equivariant) fill(config, "group", &ModelConfig::group, std::string("c1"));
  if (swin) fill(config, "pos_embed", &ModelConfig::pos_embed, std::string("none"));
  if (const NamedSize* size = find_named_size(config.name)) {
    fill(config, "image_size", &ModelConfig::image_size, size->image_size);
    fill(config, "in_channels", &ModelConfig::in_channels, std::int64_t{3});
    fill(config, "patch_size", &ModelConfig::patch_size, size->patch_size);
    fill(config, "width", &ModelConfig::width, size->width);
    fill(config, "heads", &ModelConfig::heads, size->heads);
    fill(config, "classes", &ModelConfig::classes, size->classes);
    fill(config, "depths", &ModelConfig::depths, size->depths);
    fill(config, "window", &ModelConfig::window, size->window);
    fill(config, "approximate", &ModelConfig::approximate, size->approximate);
    if (!swin) {
      fill(config, "depth", &ModelConfig::depth, size->depth);
      fill(config, "pool", &ModelConfig::pool, std::string("token"));
      if (equivariant) fill(config, "pos_embed", &ModelConfig::pos_embed, std::string("quarter"));
    }
  } else if (swin) {
    fill(config, "patch_size", &ModelConfig::patch_size, std::int64_t{2});
    fill(config, "width", &ModelConfig::width, std::int64_t{32});
    fill(config, "depths", &ModelConfig::depths, std::vector<std::int64_t>{2, 2, 2});
    fill(config, "heads", &ModelConfig::heads, std::int64_t{2});
    fill(config, "window", &ModelConfig::window, std::int64_t{4});
  }
  if (swin)
    fill(config, "depth", &ModelConfig::depth,
         std::accumulate(config.depths.begin(), config.depths.end(), std::int64_t{0}));
  return config;
}

bool is_equivariant(const ModelConfig& config) { return family_of(config.name).starts_with("eq_"); }

bool is_swin(const ModelConfig& config) { return family_of(config.name).ends_with("swin"); }

bool is_exact(const ModelConfig& config) {
  if (!is_equivariant(config)) return false;
  const std::vector<Stage> stages = stages_of(config);
  return group_of(config).order() == 1 || std::all_of(stages.begin(), stages.end(), [](const Stage& stage) {
           return stage.shift == 0 || 2 * stage.shift == stage.window;
         });
}

ModelConfig ordinary_twin(ModelConfig config) { return twin(std::move(config), false); }

ModelConfig equivariant_twin(ModelConfig config) { return twin(std::move(config), true); }

const Group& group_of(const ModelConfig& config) {
  return Group::get(is_equivariant(config) ? std::string_view(config.group) : "c1");
}

std::int64_t grid_of(const ModelConfig& config) { return config.image_size / config.patch_size; }

std::int64_t tokens_of(const ModelConfig& config) {
  return grid_of(config) * grid_of(config) + (config.pool == "token" ? 1 : 0);
}

std::int64_t hidden_of(const ModelConfig& config) {
  return std::llround(static_cast<double>(config.width) * config.mlp_ratio);
}

std::vector<Stage> stages_of(const ModelConfig& config) {
  Stage stage{grid_of(config), config.width, config.depth, config.heads, hidden_of(config), 0, 0};
  if (!is_swin(config)) return {stage};
  std::vector<Stage> stages;
  for (const std::int64_t depth : config.depths) {
    stage.depth = depth;
    stage.window = std::min(config.window, stage.grid);
    stage.shift = depth > 1 && stage.grid > stage.window ? stage.window / 2 : 0;
    stages.push_back(stage);
    stage.grid /= 2;
    for (std::int64_t* size : {&stage.width, &stage.heads, &stage.hidden}) *size *= 2;
  }
  return stages;
}

}  // namespace gyre
