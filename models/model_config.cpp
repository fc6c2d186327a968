#include "models/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/words.h"

namespace gyre {

namespace {

/// The sizes of the Flash EQ-Linear paper (arXiv 2607.21271), for ViT and EQ-ViT alike.
struct NamedSize {
  std::string_view vit, eq_vit;
  std::int64_t width, depth, heads;
};
constexpr std::array<NamedSize, 5> named_sizes = {{{"vit_t", "eq_vit_t", 384, 12, 3},
                                                   {"vit_s", "eq_vit_s", 480, 12, 6},
                                                   {"vit_b", "eq_vit_b", 768, 12, 12},
                                                   {"vit_l", "eq_vit_l", 1024, 24, 16},
                                                   {"vit_h", "eq_vit_h", 1280, 32, 16}}};

constexpr std::string_view vit = "vit";
constexpr std::string_view eq_vit = "eq_vit";

const NamedSize* find_size(std::string_view name) {
  for (const NamedSize& size : named_sizes)
    if (name == size.vit || name == size.eq_vit) return &size;
  return nullptr;
}

/// Sets a field that the user left alone.
template <class Value>
void fill(ModelConfig& config, std::string_view key, Value ModelConfig::*field, Value value) {
  static const ModelConfig defaults;
  if (config.given.contains(key) || config.*field != defaults.*field) return;
  config.*field = std::move(value);
}

}  // namespace

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names{vit, eq_vit};
  for (const NamedSize& size : named_sizes) names.push_back(size.vit);
  for (const NamedSize& size : named_sizes) names.push_back(size.eq_vit);
  return names;
}

std::string_view family_of(std::string_view name) {
  if (name == vit || name == eq_vit) return name == vit ? vit : eq_vit;
  if (const NamedSize* size = find_size(name)) return name == size->vit ? vit : eq_vit;
  const std::vector<std::string_view> names = model_names();
  const auto nearest = std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return edit_distance(a, name) < edit_distance(b, name);
  });
  throw ValueError(fmt::format("unknown model \"{}\", did you mean \"{}\"? Known are {}", name, *nearest,
                               fmt::join(names, ", ")));
}

ModelConfig resolve(ModelConfig config) {
  const bool plain = family_of(config.name) == vit;
  if (plain) fill(config, "group", &ModelConfig::group, std::string("c1"));
  const NamedSize* size = find_size(config.name);
  if (size == nullptr) return config;
  fill(config, "image_size", &ModelConfig::image_size, std::int64_t{224});
  fill(config, "in_channels", &ModelConfig::in_channels, std::int64_t{3});
  fill(config, "patch_size", &ModelConfig::patch_size, std::int64_t{16});
  fill(config, "width", &ModelConfig::width, size->width);
  fill(config, "depth", &ModelConfig::depth, size->depth);
  fill(config, "heads", &ModelConfig::heads, size->heads);
  fill(config, "classes", &ModelConfig::classes, std::int64_t{100});
  fill(config, "pool", &ModelConfig::pool, std::string("token"));
  if (!plain) fill(config, "pos_embed", &ModelConfig::pos_embed, std::string("quarter"));
  return config;
}

bool is_equivariant(const ModelConfig& config) { return family_of(config.name) == eq_vit; }

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

}  // namespace gyre
