#include "train/finetune.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "train/config_schema.h"
#include "train/terminal.h"

namespace gyre {

namespace fs = std::filesystem;

namespace {

/// Keys of the model section that do not change what its tensors mean.
const std::set<std::string_view> free_keys{"drop_path", "dropout",     "backend", "products",
                                           "window",    "approximate", "classes", "image_size"};
/// Keys that the data decides.
const std::set<std::string_view> data_keys{"classes", "image_size"};

bool matches_text(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip)
      if (matches_text(pattern.substr(1), text.substr(skip))) return true;
    return false;
  }
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         matches_text(pattern.substr(1), text.substr(1));
}

bool needs_new_head(const Checkpoint& parent, const FinetuneConfig& config,
                    const std::vector<std::string>& class_names) {
  const auto classes = static_cast<std::int64_t>(class_names.size());
  const bool same_count = parent.config.model.classes == classes;
  require<ConfigError>(config.head != "keep" || same_count,
                       "finetune.head: keep, but {} has {} classes and the data {}", config.checkpoint,
                       parent.config.model.classes, classes);
  if (config.head != "auto") return config.head == "new";
  return !same_count || (!parent.class_names.empty() && parent.class_names != class_names);
}

void add_lines(std::string& text, std::string_view what, const std::vector<TakenTensor>& tensors) {
  for (const TakenTensor& tensor : tensors) {
    const bool changed = tensor.from.rank() > 0 && !(tensor.from == tensor.to);
    text += fmt::format("\n{:<12} {} {} {}{}", "", what, tensor.name,
                        changed ? fmt::format("{} to ", tensor.from) : "", tensor.to);
  }
}

}  // namespace

Checkpoint read_parent(const FinetuneConfig& config) {
  return read_checkpoint(find_checkpoint(config.checkpoint), CheckpointParts::weights);
}

ModelConfig adopt_model(const ModelConfig& given, const ModelConfig& parent, const std::string& origin) {
  Config asked, stored;
  asked.model = given;
  stored.model = parent;
  Config result = stored;
  result.model.given.clear();
  for (const ConfigField& field : config_schema()) {
    if (field.section != "model") continue;
    const bool set = given.given.contains(field.name);
    if (!data_keys.contains(field.name) || set) result.model.given.insert(field.name);
    if (!set) continue;
    const std::string now = field.write(asked), before = field.write(stored);
    if (free_keys.contains(field.name))
      field.read(result, *read_yaml(now, field.path()));
    else
      require<ConfigError>(now == before, "{}: {}, but {} has {}; leave it out", field.path(), now, origin,
                           before);
  }
  return result.model;
}

Transfer take_over(Model& model, const Checkpoint& parent, const FinetuneConfig& config,
                   const std::vector<std::string>& class_names) {
  const bool averaged = config.weights == "ema" && !parent.ema.empty();
  try {
    return transfer_weights(model, parent.config.model, averaged ? parent.ema : parent.weights,
                            needs_new_head(parent, config, class_names));
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(fmt::format("{}: {}", parent.path.string(), error.what()));
  }
}

std::string describe(const Checkpoint& parent, const Transfer& transfer, bool all) {
  std::int64_t values = 0;
  for (const TakenTensor& tensor : transfer.kept) values += tensor.to.numel();
  const ModelConfig& model = parent.config.model;
  std::string text =
      fmt::format("{:<12} {}: {}, {} classes, {} px, {} updates\n", "parent", parent.path.string(),
                  model.name, model.classes, model.image_size, with_commas(parent.state.updates));
  text += fmt::format("{:<12} kept {} tensors, {} values; resampled {}; new {}", "", transfer.kept.size(),
                      with_commas(values), transfer.resampled.size(), transfer.initialised.size());
  if (all) add_lines(text, "kept", transfer.kept);
  add_lines(text, "resampled", transfer.resampled);
  add_lines(text, "new", transfer.initialised);
  return text;
}

bool matches_name(std::string_view pattern, std::string_view name) {
  for (std::size_t end = name.find('.'); end != std::string_view::npos; end = name.find('.', end + 1))
    if (matches_text(pattern, name.substr(0, end))) return true;
  return matches_text(pattern, name);
}

void freeze_parameters(Module& model, std::span<const std::string> patterns) {
  const auto parameters = model.parameters();
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (const auto& [name, parameter] : parameters) {
      if (!matches_name(pattern, name)) continue;
      parameter->variable.set_requires_grad(false);
      any = true;
    }
    require<ConfigError>(any, "finetune.freeze: \"{}\" means no parameter; names are such as {} and {}",
                         pattern, parameters.front().name, parameters.back().name);
  }
  require<ConfigError>(std::any_of(parameters.begin(), parameters.end(),
                                   [](const auto& p) { return p.parameter->variable.requires_grad(); }),
                       "finetune.freeze: [{}] leaves nothing to train", fmt::join(patterns, ", "));
}

void scale_rates(Module& model, double decay) {
  std::vector<std::string> blocks;
  for (const auto& [name, module] : model.modules())
    if (module->kind().ends_with("Block")) blocks.push_back(name + ".");
  std::size_t depth = 0;
  for (const auto& [name, parameter] : model.parameters()) {
    const auto block = std::find_if(blocks.begin(), blocks.end(),
                                    [&](const std::string& prefix) { return name.starts_with(prefix); });
    if (block != blocks.end())
      depth = static_cast<std::size_t>(block - blocks.begin()) + 1;
    else if (depth == blocks.size())
      depth = blocks.size() + 1;
    parameter->rate = std::pow(decay, static_cast<double>(blocks.size() + 1 - depth));
  }
}

}  // namespace gyre
