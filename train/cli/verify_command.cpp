#include <algorithm>
#include <filesystem>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "models/registry.h"
#include "models/verify.h"
#include "train/checkpoint.h"
#include "train/cli/command.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  CommonOptions common;
  std::string target;
  std::vector<std::string> overrides;
  std::string weights = "ema";
  std::int64_t samples = 0, seed = 0;
};

struct Subject {
  std::unique_ptr<Model> model;
  std::string origin;  ///< "runs/a/checkpoints/best (ema weights)" or "initialised with seed 0"
};

bool is_model_name(const std::string& text) {
  const auto names = model_names();
  return std::find(names.begin(), names.end(), text) != names.end();
}

Subject from_checkpoint(const Options& options) {
  require<UsageError>(options.overrides.empty(), "--set: {} is a checkpoint, whose model is fixed",
                      options.target);
  const fs::path path = find_checkpoint(options.target);
  const Checkpoint checkpoint = read_checkpoint(path, CheckpointParts::weights);
  const bool averaged = options.weights == "ema" && !checkpoint.ema.empty();
  return {load_model(checkpoint, options.weights),
          fmt::format("{} ({} weights)", path.string(), averaged ? "ema" : "raw")};
}

Subject from_name(const Options& options) {
  Config config;
  if (fs::path(options.target).extension() == ".yaml") {
    config = load_config(options.target, options.overrides);
  } else {
    config.model.name = options.target;
    for (const std::string& text : options.overrides) apply_override(config, text);
  }
  try {
    return {make_model(config.model, static_cast<std::uint64_t>(options.seed)),
            fmt::format("initialised with seed {}", options.seed)};
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}{}", options.overrides.empty() ? "" : "with --set: ", error.what()));
  }
}

Subject subject_of(const Options& options) {
  const std::string& target = options.target;
  const bool yaml = fs::path(target).extension() == ".yaml";
  if (is_model_name(target) || yaml) return from_name(options);
  std::error_code unreadable;
  if (fs::exists(target, unreadable) || target.find('/') != std::string::npos)
    return from_checkpoint(options);
  try {
    family_of(target);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("{}; nor is there a checkpoint {}", error.what(), target));
  }
  return {};
}

nlohmann::ordered_json to_json(const Model& model, const Subject& subject, const VerifyResult& result) {
  auto exactness = nlohmann::ordered_json::array(), equivariance = nlohmann::ordered_json::array();
  for (const ExactnessRow& row : result.exactness) {
    exactness.push_back({{"tensor", row.tensor},
                         {"layer", row.layer},
                         {"dtype", fmt::format("{}", row.dtype)},
                         {"rel_l2", row.error.rel_l2},
                         {"max_abs", row.error.max_abs},
                         {"mean_abs", row.error.mean_abs},
                         {"p99_rel", row.error.p99_rel},
                         {"pass", row.pass}});
  }
  for (const EquivarianceRow& row : result.equivariance) {
    equivariance.push_back({{"scope", row.scope},
                            {"element", row.element},
                            {"dtype", fmt::format("{}", row.dtype)},
                            {"nmae", row.nmae},
                            {"rel_l2", row.rel_l2},
                            {"pass", row.pass}});
  }
  return {{"model", model.config().name}, {"weights", subject.origin},
          {"group", result.group},        {"backend", model.config().backend},
          {"samples", result.samples},    {"pass", result.pass()},
          {"exactness", exactness},       {"equivariance", equivariance}};
}

std::string_view verdict(bool pass) { return pass ? "pass" : "FAIL"; }

void print_exactness(const VerifyResult& result) {
  if (result.exactness.empty()) return;
  fmt::print("\nflash against naive, the worst of {} layers\n", result.layers);
  fmt::print("{:<7} {:<5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}        {}\n", "tensor", "type", "rel-L2", "max",
             "mean", "p99 rel.", "allowed", "layer");
  for (const ExactnessRow& row : result.exactness) {
    fmt::print("{:<7} {:<5}  {:>9.2e}  {:>9.2e}  {:>9.2e}  {:>9.2e}  {:>9.0e}  {}  {}\n", row.tensor,
               fmt::format("{}", row.dtype), row.error.rel_l2, row.error.max_abs, row.error.mean_abs,
               row.error.p99_rel, exactness_mark(row.dtype), verdict(row.pass), row.layer);
  }
}

void print_row(const EquivarianceRow& row) {
  const bool outside = row.scope == "outside";
  const std::string mark = outside ? fmt::format(">{:.0e}", outside_mark)
                                   : fmt::format("{:.0e}", equivariance_mark(row.scope, row.dtype));
  fmt::print("{:<16} {:<16} {:<5}  {:>9.2e}  {:>9.2e}  {:>9}  {}\n", row.scope, row.element,
             fmt::format("{}", row.dtype), row.nmae, row.rel_l2, mark, verdict(row.pass));
}

/// Each layer kind with its worst element, then every element for the model.
void print_equivariance(const VerifyResult& result) {
  fmt::print("\nf(gx) against g f(x), f and g of {}\n", result.group);
  fmt::print("{:<16} {:<16} {:<5}  {:>9}  {:>9}  {:>9}\n", "scope", "element", "type", "NMAE", "rel-L2",
             "allowed");
  for (const EquivarianceRow& row : result.equivariance) {
    const bool whole = row.scope == "model" || row.scope == "outside";
    const bool worst = std::none_of(result.equivariance.begin(), result.equivariance.end(),
                                    [&](const EquivarianceRow& other) {
                                      const bool later = &other > &row;
                                      return other.scope == row.scope && other.dtype == row.dtype &&
                                             (other.nmae > row.nmae || (later && other.nmae == row.nmae));
                                    });
    if (whole || worst) print_row(row);
  }
}

int run(const Options& options) {
  const Device device = prepare_machine(options.common, 0, true);
  Subject subject = subject_of(options);
  Model& model = *subject.model;
  model.to(device);
  if (!options.common.backend.empty()) model.set_backend(kernels::parse_eq_backend(options.common.backend));
  VerifyOptions how;
  how.samples = options.samples;
  how.seed = static_cast<std::uint64_t>(options.seed);
  ProgressLine progress(stderr, !options.common.json);
  how.progress = [&](std::string_view task, double fraction) { progress.update("verify", fraction, task); };
  const VerifyResult result = verify_model(model, how);
  progress.clear();
  if (options.common.json) {
    fmt::print("{}\n", to_json(model, subject, result).dump(2));
    return result.pass() ? success : failure;
  }
  const ModelConfig& config = model.config();
  fmt::print("model    {} ({}), {} parameters, backend {}\n", config.name,
             is_equivariant(config) ? config.group : "no symmetry", with_commas(model.parameter_count()),
             config.backend);
  fmt::print("weights  {}\n", subject.origin);
  fmt::print("images   {} of {}x{}x{}, standard normal values\n", result.samples, config.in_channels,
             config.image_size, config.image_size);
  print_exactness(result);
  print_equivariance(result);
  fmt::print(
      "\nNMAE: mean |f(gx) - g f(x)| / mean |g f(x)|; a kind of layer shows its worst element; outside: "
      "elements\nthat are not of the group must change the logits.\n");
  fmt::print("{}\n", result.pass() ? "pass" : "FAIL");
  return result.pass() ? success : failure;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "verify", "prove a model: flash against naive, and equivariance under every element of its group");
  command
      ->add_option("MODEL", options->target,
                   "model name, YAML file (freshly initialised), or checkpoint or run directory")
      ->type_name("")
      ->required();
  add_set_option(*command, options->overrides);
  add_choice(*command, "--weights", options->weights, {"ema", "raw"}, "of a checkpoint: averaged or raw",
             "ema");
  add_number(*command, "--samples", options->samples, {0, 64}, "images; 0: 1 to 8, fewer for larger models");
  add_number(*command, "--seed", options->seed, {0, 1'000'000'000}, "of the images and of initial weights");
  add_common_options(*command, options->common);
  add_backend_option(*command, options->common);
  add_pin_option(*command, options->common);
  add_tune_option(*command, options->common);
  command->footer("Exit codes: 0 all rows pass, 1 some fail or an error, 2 wrong use.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gyre::cli
