#include <algorithm>
#include <cmath>
#include <concepts>
#include <numeric>

#include "core/error.h"
#include "kernels/eq_linear.h"
#include "models/model_config.h"

namespace gyre {

namespace {

constexpr std::int64_t largest = 1 << 20;

/// The closest values in [1, limit] below and above `from` that are legal: "4, 8", or "4" where one side has
/// none.
template <std::predicate<std::int64_t> Legal>
std::string nearby(std::int64_t from, std::int64_t limit, Legal legal) {
  std::vector<std::int64_t> found;
  for (std::int64_t below = std::min(from - 1, limit); below >= 1; --below) {
    if (!legal(below)) continue;
    found.push_back(below);
    break;
  }
  for (std::int64_t above = from + 1; above <= limit; ++above) {
    if (!legal(above)) continue;
    found.push_back(above);
    break;
  }
  return found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", "));
}

void check_range(std::string_view key, std::int64_t value, std::int64_t most = largest) {
  require<ValueError>(value >= 1 && value <= most, "model.{} {} is not in 1 to {}", key, value, most);
}

void check_rate(std::string_view key, double rate) {
  require<ValueError>(rate >= 0 && rate < 1, "model.{} {:g} is not in [0, 1)", key, rate);
}

void check_group(const ModelConfig& config) {
  if (!is_equivariant(config)) {
    require<ValueError>(config.group == "c1",
                        "model.group {}: {} has no group axis; leave group out or use eq_{}", config.group,
                        config.name, config.name);
    return;
  }
  std::vector<std::string_view> legal;
  for (const std::string_view name : Group::names())
    if (Group::get(name).has_image_action()) legal.push_back(name);
  const auto names = Group::names();
  require<ValueError>(std::find(names.begin(), names.end(), config.group) != names.end(),
                      "model.group \"{}\" is unknown; legal are {}", config.group, fmt::join(legal, ", "));
  require<ValueError>(Group::get(config.group).has_image_action(),
                      "model.group: {} has no exact image action; legal are {}", config.group,
                      fmt::join(legal, ", "));
}

void check_image(const ModelConfig& config) {
  const std::int64_t size = config.image_size, patch = config.patch_size;
  require<ShapeError>(
      size % patch == 0,
      "model.patch_size: {}x{} image with patch {} leaves a remainder of {}; legal patch sizes "
      "nearby: {}; image sizes: {}",
      size, size, patch, size % patch, nearby(patch, size, [&](std::int64_t p) { return size % p == 0; }),
      nearby(size, 16384, [&](std::int64_t s) { return s % patch == 0; }));
}

void check_width(const ModelConfig& config) {
  const std::int64_t order = group_of(config).order(), width = config.width, heads = config.heads;
  const auto whole_orbits = [&](std::int64_t w) { return w % order == 0; };
  require<ShapeError>(whole_orbits(width), "model.width {} is not a multiple of {} (group {}): nearest {}",
                      width, order, config.group, nearby(width, largest, whole_orbits));
  const auto legal_heads = [&](std::int64_t h) { return width % (h * order) == 0; };
  require<ShapeError>(width % heads == 0, "model.heads {} does not divide width {}: nearest {}", heads, width,
                      nearby(heads, width, legal_heads));
  require<ShapeError>(
      legal_heads(heads),
      "model.heads: head dimension {}/{} = {} is not a multiple of {} (group {}): nearest heads {}", width,
      heads, width / heads, order, config.group, nearby(heads, width, legal_heads));
  const double hidden = static_cast<double>(width) * config.mlp_ratio;
  require<ValueError>(config.mlp_ratio > 0 && hidden <= static_cast<double>(largest),
                      "model.mlp_ratio {:g} is not in (0, {:g}]", config.mlp_ratio,
                      static_cast<double>(largest) / static_cast<double>(width));
  const double lower = std::floor(hidden / static_cast<double>(order)) * static_cast<double>(order);
  require<ShapeError>(
      hidden == lower && hidden >= 1,
      "model.mlp_ratio {:g} gives a hidden width of {:g}, not a multiple of {}: nearest ratio {:g}",
      config.mlp_ratio, hidden, order, (lower + static_cast<double>(order)) / static_cast<double>(width));
}

/// Swin's sizes: stages that halve the grid, windows that tile it and, unless it is said to be approximate,
/// keep the symmetry.
bool halves(const ModelConfig& config) {
  const std::int64_t last = std::int64_t{1} << (config.depths.size() - 1);
  return config.image_size % config.patch_size == 0 && grid_of(config) % last == 0;
}
bool tiles(const ModelConfig& config) {
  const std::vector<Stage> stages = stages_of(config);
  return halves(config) && std::all_of(stages.begin(), stages.end(),
                                       [](const Stage& stage) { return stage.grid % stage.window == 0; });
}
bool keeps_symmetry(const ModelConfig& config) {
  return !is_equivariant(config) || config.approximate || is_exact(config);
}

/// Legal values of a size near the given one, the others left as they are.
std::string legal_nearby(ModelConfig config, std::int64_t ModelConfig::*size, std::int64_t limit) {
  return nearby(config.*size, limit, [&](std::int64_t value) {
    config.*size = value;
    return tiles(config) && keeps_symmetry(config);
  });
}

void check_stages(const ModelConfig& config) {
  if (!is_swin(config)) {
    require<ValueError>(config.depths.empty(), "model.depths [{}]: {} has one stage, of model.depth blocks",
                        fmt::join(config.depths, ", "), config.name);
    require<ValueError>(config.window == 0, "model.window {}: {} has no windows; leave window out",
                        config.window, config.name);
    return;
  }
  const auto stages = static_cast<std::int64_t>(config.depths.size());
  require<ValueError>(stages >= 1 && stages <= 8,
                      "model.depths has {} entries; {} needs 1 to 8 stages, such as [2, 2, 6, 2]", stages,
                      config.name);
  for (const std::int64_t depth : config.depths) check_range("depths", depth, 1000);
  const std::int64_t blocks = std::accumulate(config.depths.begin(), config.depths.end(), std::int64_t{0});
  require<ValueError>(config.depth == blocks,
                      "model.depth {} is not the sum of model.depths [{}]; leave depth out", config.depth,
                      fmt::join(config.depths, ", "));
  check_range("window", config.window);
  check_range("width of the last stage", config.width << (stages - 1));
  const std::int64_t size = config.image_size, patch = config.patch_size, grid = grid_of(config);
  require<ShapeError>(
      halves(config),
      "model.image_size: {}/{} is a grid of {}x{}, which {} stages cannot halve {} times; legal "
      "image sizes nearby: {}",
      size, patch, grid, grid, stages, stages - 1, legal_nearby(config, &ModelConfig::image_size, 16384));
  for (const Stage& stage : stages_of(config))
    require<ShapeError>(stage.grid % stage.window == 0,
                        "model.window: windows of {} do not tile the grid of {}x{}; legal windows nearby: "
                        "{}; image sizes: {}",
                        stage.window, stage.grid, stage.grid,
                        legal_nearby(config, &ModelConfig::window, grid),
                        legal_nearby(config, &ModelConfig::image_size, 16384));
  require<ShapeError>(
      keeps_symmetry(config),
      "model.window {}: only windows moved by half of their size keep the symmetry exactly; legal "
      "windows nearby: {}; or set approximate: true",
      config.window, legal_nearby(config, &ModelConfig::window, grid));
}

void check_positions(const ModelConfig& config) {
  if (is_swin(config)) {
    require<ValueError>(config.pos_embed == "none",
                        "model.pos_embed {}: {} knows positions within windows only; leave pos_embed out",
                        config.pos_embed, config.name);
    require<ValueError>(config.pool == "mean", "model.pool {}: {} has no class token; leave pool out",
                        config.pool, config.name);
    return;
  }
  require<ValueError>(config.pos_embed == "full" || config.pos_embed == "quarter",
                      "model.pos_embed \"{}\" is neither full nor quarter", config.pos_embed);
  if (config.pos_embed == "full") return;
  require<ValueError>(is_equivariant(config), "model.pos_embed: {} has the full table only", config.name);
  const std::int64_t grid = grid_of(config), patch = config.patch_size;
  if (grid % 2 == 0 || group_of(config).order() == 1) return;
  const std::string sizes = grid == 1 ? fmt::format("{}", 2 * patch)
                                      : fmt::format("{} or {}", (grid - 1) * patch, (grid + 1) * patch);
  throw ShapeError(
      fmt::format("model.pos_embed: the quarter table needs an even grid, {}/{} is {}x{}: use full, or "
                  "image_size {}",
                  config.image_size, patch, grid, grid, sizes));
}

void check_backend(const ModelConfig& config) {
  try {
    kernels::parse_eq_backend(config.backend);
  } catch (const ValueError&) {
    throw ValueError(fmt::format("model.backend \"{}\" is not auto, flash or naive", config.backend));
  }
  const Group& group = group_of(config);
  const int plain = group.plain_form().products(), fewest = group.fewest_form().products();
  const std::int64_t asked = config.products;
  require<ValueError>(asked == 0 || !is_equivariant(config) || asked == plain || asked == fewest,
                      "model.products {}: group {} has flash forms of {} and {} products; 0 takes the fewest",
                      asked, config.group, fewest, plain);
}

}  // namespace

void validate(const ModelConfig& config) {
  check_group(config);
  check_range("image_size", config.image_size, 16384);
  check_range("in_channels", config.in_channels);
  check_range("patch_size", config.patch_size);
  check_range("width", config.width);
  check_range("depth", config.depth, 1000);
  check_range("heads", config.heads);
  check_range("classes", config.classes);
  check_rate("drop_path", config.drop_path);
  check_rate("dropout", config.dropout);
  require<ValueError>(config.pool == "mean" || config.pool == "token",
                      "model.pool \"{}\" is neither mean nor token", config.pool);
  check_image(config);
  check_width(config);
  check_stages(config);
  check_positions(config);
  check_backend(config);
}

}  // namespace gyre
