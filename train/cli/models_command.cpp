#include <algorithm>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "models/counting.h"
#include "models/registry.h"
#include "train/cli/command.h"
#include "train/config.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  std::vector<std::string> names;
  std::vector<std::string> overrides;
  bool layers = false;
  bool json = false;
};

struct Entry {
  std::string name;
  ModelConfig config;
};

/// The named sizes, or the names and configuration files asked for.
std::vector<Entry> entries_of(const Options& options) {
  const auto known = model_names();
  std::vector<std::string> names = options.names;
  if (names.empty()) names.assign(known.begin(), known.end());
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    Config config;
    if (name.ends_with(".yaml") || name.ends_with(".yml")) {
      config = load_config(name, options.overrides);
    } else {
      config.model.name = name;
      for (const std::string& text : options.overrides) apply_override(config, text);
      try {
        config.model = resolve(config.model);
        validate(config.model);
      } catch (const Error& error) {
        throw UsageError(fmt::format("{}{}", options.overrides.empty() ? "" : "with --set: ", error.what()));
      }
    }
    entries.push_back({name, config.model});
  }
  return entries;
}

double giga(std::int64_t flops) { return static_cast<double>(flops) * 1e-9; }

void print_table(const std::vector<Entry>& entries) {
  std::size_t width = 5;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  fmt::print("{:<{}}  {:>8}  {:>10}  {:>10}  {:>11}  {}\n", "model", width, "params", "linear GF", "total GF",
             "executed GF", "exact");
  for (const Entry& entry : entries) {
    const ModelCounts counts = count_model(entry.config);
    fmt::print("{:<{}}  {:>8}  {:>10.4g}  {:>10.4g}  {:>11.4g}  {}\n", entry.name, width,
               format_si(static_cast<double>(counts.parameters)), giga(counts.linear_flops),
               giga(counts.total_flops), giga(counts.executed_flops), counts.exact ? "yes" : "no");
  }
  fmt::print(
      "\nGF: 1e9 floating-point operations per image, forward. linear: linear layers of the blocks; total: "
      "with patch\n"
      "embedding, attention and head; executed: what runs here. exact: logits do not change when the image "
      "turns.\n");
}

void print_json(const std::vector<Entry>& entries) {
  auto models = nlohmann::ordered_json::array();
  for (const Entry& entry : entries) {
    const ModelCounts counts = count_model(entry.config);
    models.push_back({{"name", entry.name},
                      {"params", counts.parameters},
                      {"linear_gflops", giga(counts.linear_flops)},
                      {"total_gflops", giga(counts.total_flops)},
                      {"executed_gflops", giga(counts.executed_flops)},
                      {"exact", counts.exact}});
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"models", models}}.dump(2));
}

/// The tree of layers with their sizes.
void print_layers(const Entry& entry) {
  const auto model = make_model(entry.config, 0);
  fmt::print("{}: {} parameters\n", entry.name, with_commas(model->parameter_count()));
  std::vector<std::string> parents;
  for (const Module::NamedModule& node : model->modules()) {
    if (node.name.empty()) continue;
    while (!parents.empty() && !node.name.starts_with(parents.back())) parents.pop_back();
    const std::size_t skipped = parents.empty() ? 0 : parents.back().size();
    const std::string label = fmt::format("{:{}}{}", "", 2 * parents.size() + 2, node.name.substr(skipped));
    std::string line = fmt::format("{:<22} {:<16} {}", label, node.module->kind(), node.module->describe());
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
    parents.push_back(node.name + ".");
  }
}

}  // namespace

void add_models_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("models", "parameters and cost of the models");
  command->add_option("MODEL", options->names, "names or YAML files (default: every named size)")
      ->type_name("");
  command->add_flag("--layers", options->layers, "print the tree of layers (default: off)");
  add_set_option(*command, options->overrides);
  add_json_option(*command, options->json);
  command->callback([options, &action] {
    action = [options] {
      if (options->json && options->layers) throw UsageError("--layers has no JSON form");
      const std::vector<Entry> entries = entries_of(*options);
      if (options->json) {
        print_json(entries);
      } else if (options->layers) {
        for (const Entry& entry : entries) print_layers(entry);
      } else {
        print_table(entries);
      }
      return success;
    };
  });
}

}  // namespace gyre::cli
