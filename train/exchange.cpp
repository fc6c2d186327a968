#include "train/exchange.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "models/counting.h"
#include "models/exchange/layout.h"
#include "models/registry.h"
#include "train/checkpoint.h"
#include "train/trainer_state.h"

namespace gyre {
namespace fs = std::filesystem;
namespace {

bool is_yaml(const std::string& name) { return name.ends_with(".yaml") || name.ends_with(".yml"); }

/// Configuration, preprocessing and class names, as far as options and file tell them.
Checkpoint describe(const ImportOptions& options, const SafetensorsFile& file) {
  Checkpoint checkpoint;
  Config& config = checkpoint.config;
  if (is_yaml(options.model)) {
    config = load_config(options.model, options.overrides);
    return checkpoint;
  }
  if (options.model.empty()) {
    const bool told = read_weights_metadata(file.metadata, options.file.string(), checkpoint);
    if (!told)
      throw ConfigError(fmt::format("{}: the file does not say what model it holds; name it with --model",
                                    options.file.string()));
  } else {
    config.model.name = options.model;
    config.data.dataset = "image_folder";
    config.data.pad_to = 0;
  }
  for (const std::string& text : options.overrides) apply_override(config, text);
  return checkpoint;
}

/// FileError for a model that the file cannot fill, before memory is taken for it.
void require_filled(const ImportOptions& options, const TensorMap& tensors, const ModelConfig& model) {
  constexpr std::int64_t always_built = 1 << 22;
  std::int64_t values = 0;
  for (const auto& [name, tensor] : tensors) values += tensor.numel();
  const std::int64_t most = std::max(2 * values, always_built);
  // Counting builds indices of patches and positions, so a bound for these comes first.
  const auto square = [](std::int64_t side) { return static_cast<double>(side) * static_cast<double>(side); };
  const auto channels = static_cast<double>(model.width / group_of(model).order());
  const double filter = channels * static_cast<double>(model.in_channels) * square(model.patch_size);
  const double places = model.pos_embed == "none" ? 0 : channels * square(grid_of(model)) / 8;
  const bool countable = std::max(filter, places) <= static_cast<double>(most);
  const std::int64_t needed = countable ? count_model(model).parameters : 0;
  require<FileError>(countable && needed <= most, "{}: {} values in all, {} has {}", options.file.string(),
                     values, model.name, countable ? fmt::format("{}", needed) : "far more");
}

void resolve_model(const ImportOptions& options, const TensorMap& tensors, ModelConfig& model) {
  const auto classes = classes_in(tensors);
  if (classes && !model.given.contains("classes")) {
    model.classes = *classes;
    model.given.insert("classes");
  }
  try {
    model = resolve(model);
    validate(model);
  } catch (const Error& error) {
    throw ConfigError(options.model.empty() ? fmt::format("{}: {}", options.file.string(), error.what())
                                            : fmt::format("--model {}: {}", options.model, error.what()));
  }
  require_filled(options, tensors, model);
}

/// timm's usual values: one half for ViT, ImageNet's for the others.
void default_pixels(const ModelConfig& model, Preprocessing& form) {
  if (form.channels == 1 || family_of(model.name) == "vit") {
    form.mean.assign(static_cast<std::size_t>(form.channels), 0.5);
    form.std = form.mean;
  } else {
    form.mean = {0.485, 0.456, 0.406};
    form.std = {0.229, 0.224, 0.225};
  }
}

void complete_preprocessing(const ImportOptions& options, Checkpoint& checkpoint) {
  const ModelConfig& model = checkpoint.config.model;
  DataConfig& data = checkpoint.config.data;
  Preprocessing& form = checkpoint.preprocessing;
  if (!options.model.empty()) {
    form.channels = static_cast<int>(model.in_channels);
    form.native_size = form.size = static_cast<int>(model.image_size);
    default_pixels(model, form);
    if (!data.mean.empty()) form.mean = data.mean;
    if (!data.std.empty()) form.std = data.std;
  }
  if (!options.mean.empty()) form.mean = options.mean;
  if (!options.std.empty()) form.std = options.std;
  try {
    form.check();
  } catch (const ValueError& error) {
    throw ConfigError(fmt::format("{}: {}", options.file.string(), error.what()));
  }
  require<ConfigError>(form.channels == model.in_channels && form.size == model.image_size,
                       "{}: images of {} channels and {} px, but the model takes {} and {}",
                       options.file.string(), form.channels, form.size, model.in_channels, model.image_size);
  data.mean = form.mean;
  data.std = form.std;
  if (data.dataset == "image_folder") data.image_size = form.native_size;
}

std::vector<std::string> read_class_names(const fs::path& path, std::int64_t classes) {
  std::vector<std::string> names;
  const std::string text = read_file(path);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string name = text.substr(at, end - at);
    if (name.ends_with('\r')) name.pop_back();
    names.push_back(std::move(name));
    at = end + 1;
  }
  require<FileError>(std::cmp_equal(names.size(), classes),
                     "{}: {} class names, the model tells {} classes apart", path.string(), names.size(),
                     classes);
  return names;
}

/// A checkpoint is never put in the place of something else.
void require_absent(const fs::path& path) {
  std::error_code error;
  require<FileError>(!fs::exists(fs::symlink_status(path, error)), "{}: exists already; choose another --out",
                     path.string());
}

}  // namespace

ImportResult import_checkpoint(const ImportOptions& options) {
  ImportResult result;
  result.checkpoint = options.out;
  if (options.out.empty()) {
    result.checkpoint = options.file;
    result.checkpoint.replace_extension();
  }
  require_absent(result.checkpoint);
  const SafetensorsFile file = read_safetensors(options.file);
  Checkpoint checkpoint = describe(options, file);
  resolve_model(options, file.tensors, checkpoint.config.model);
  const ModelConfig& config = checkpoint.config.model;
  complete_preprocessing(options, checkpoint);
  if (!options.classes.empty()) checkpoint.class_names = read_class_names(options.classes, config.classes);
  if (checkpoint.class_names.size() != static_cast<std::size_t>(config.classes))
    checkpoint.class_names.clear();

  const auto model = make_model(config, checkpoint.config.train.seed);
  const Layout layout =
      options.layout == "auto" ? detect_layout(file.tensors, config) : parse_layout(options.layout);
  try {
    ImportedWeights imported = import_weights(file.tensors, *model, layout);
    checkpoint.weights = std::move(imported.weights);
    result.notes = std::move(imported.notes);
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: {}", options.file.string(), error.what()));
  }
  write_checkpoint(result.checkpoint, checkpoint);

  result.model = config.name;
  result.layout = name_of(layout);
  result.tensors = static_cast<std::int64_t>(checkpoint.weights.size());
  result.parameters = model->parameter_count();
  result.classes = config.classes;
  result.preprocessing = checkpoint.preprocessing;
  return result;
}

ExportResult export_checkpoint(const ExportOptions& options) {
  const Layout layout = parse_layout(options.layout);
  ExportResult result;
  result.checkpoint = find_checkpoint(options.checkpoint);
  Checkpoint checkpoint = read_checkpoint(result.checkpoint, CheckpointParts::weights);
  const std::unique_ptr<Model> model = load_model(checkpoint, options.weights);
  result.weights = options.weights == "ema" && checkpoint.ema.empty() ? "raw" : options.weights;
  TensorMap tensors;
  try {
    tensors = export_weights(*model, layout);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", result.checkpoint.string(), error.what()));
  }
  checkpoint.config.model = config_in(model->config(), layout);
  Metadata metadata = weights_metadata(checkpoint, result.weights);
  // Readers of PyTorch's world ask for it.
  if (layout != Layout::gyre) metadata["format"] = "pt";
  const std::string bytes = encode_safetensors(tensors, metadata);
  write_file_atomically(options.file, bytes);

  result.model = checkpoint.config.model.name;
  result.tensors = static_cast<std::int64_t>(tensors.size());
  for (const auto& [name, tensor] : tensors) result.parameters += tensor.numel();
  result.bytes = static_cast<std::int64_t>(bytes.size());
  return result;
}

}  // namespace gyre
