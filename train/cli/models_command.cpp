#include <algorithm>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "layers/initialise.h"
#include "models/counting.h"
#include "models/registry.h"
#include "train/cli/command.h"
#include "train/cli/module_tree.h"
#include "train/config.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  std::vector<std::string> names;
  std::vector<std::string> overrides;
  bool json = false;
};

struct Entry {
  std::string name;
  ModelConfig config;
};

/// Every known model, or the names and configuration files asked for.
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

/// "c4 exact", "c4 approximate", "none".
std::string symmetry_of(const ModelConfig& model) {
  if (!is_equivariant(model)) return "none";
  return fmt::format("{} {}", model.group, is_exact(model) ? "exact" : "approximate");
}

void print_table(const std::vector<Entry>& entries) {
  std::size_t width = 5;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  fmt::print("{:<{}}  {:>9}  {:>10}  {:>10}  {:>11}  {}\n", "model", width, "params M", "linear GF",
             "total GF", "executed GF", "symmetry");
  for (const Entry& entry : entries) {
    const ModelCounts counts = count_model(entry.config);
    fmt::print("{:<{}}  {:>9.3f}  {:>10.3f}  {:>10.3f}  {:>11.3f}  {}\n", entry.name, width,
               static_cast<double>(counts.parameters) * 1e-6, giga(counts.linear_flops),
               giga(counts.total_flops), giga(counts.executed_flops), symmetry_of(entry.config));
  }
}

void print_legend() {
  fmt::print(
      "\nGF: 1e9 floating-point operations per image, forward, by the rule of arXiv 2607.21271. linear: "
      "linear "
      "layers;\n"
      "total: with patch embedding and attention; executed: what runs here. exact: logits do not change when "
      "an "
      "element\n"
      "of the group acts on the image.\n");
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

void print_layers(const Entry& entry) {
  const WithoutInitialisation shapes_only;
  const auto model = make_model(entry.config, 0);
  fmt::print("\n{}: {}, {} parameters\n{}", entry.name, model->describe(),
             with_commas(model->parameter_count()), module_tree(*model));
}

}  // namespace

void add_models_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("models", "parameters and cost of the models");
  command
      ->add_option("MODEL", options->names,
                   "names or YAML files, shown with their layers (default: a table of every model)")
      ->type_name("");
  add_set_option(*command, options->overrides);
  add_json_option(*command, options->json);
  command->callback([options, &action] {
    action = [options] {
      const std::vector<Entry> entries = entries_of(*options);
      if (options->json) {
        print_json(entries);
      } else {
        print_table(entries);
        if (options->names.empty()) print_legend();
        for (const Entry& entry : entries) {
          if (!options->names.empty()) print_layers(entry);
        }
      }
      return success;
    };
  });
}

}  // namespace gyre::cli
