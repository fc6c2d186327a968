#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/command.h"
#include "train/config_schema.h"

namespace gyre::cli {
namespace {

/// A value of the configuration as JSON: `text` is how YAML writes it.
nlohmann::ordered_json value_of(const ConfigField& field, const std::string& text) {
  // Numbers, true, false and lists of numbers read the same in both; other texts lose their quotes.
  if (field.list || field.legal.starts_with('[') || field.legal.starts_with('(') ||
      field.legal == "true | false")
    return nlohmann::ordered_json::parse(text);
  return read_yaml(text, field.path())->text;
}

/// One object per section.
nlohmann::ordered_json to_json(const Config& config) {
  nlohmann::ordered_json json;
  for (const ConfigField& field : config_schema()) {
    std::string pointer = "/" + field.path();
    for (char& c : pointer) c = c == '.' ? '/' : c;
    json[nlohmann::ordered_json::json_pointer(pointer)] = value_of(field, field.write(config));
  }
  return json;
}

}  // namespace

void add_config_command(CLI::App& app, Action& action) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("config", "list every configuration key, or print a file with all values filled in");
  command
      ->add_option("CONFIG", options->config,
                   "YAML file; none: every key with default, legal values and meaning")
      ->type_name("");
  add_set_option(*command, options->overrides);
  add_json_option(*command, options->json);
  command->callback([options, &action] {
    action = [options] {
      if (options->config.empty() && options->overrides.empty() && !options->json) {
        fmt::print("{}", config_help());
        return success;
      }
      Config config;
      if (!options->config.empty()) {
        config = load_config(options->config, options->overrides);
      } else {
        for (const std::string& text : options->overrides) apply_override(config, text);
      }
      if (options->json) {
        config.model = resolve(config.model);
        // A path need not be UTF-8.
        const auto replace = nlohmann::ordered_json::error_handler_t::replace;
        fmt::print("{}\n", to_json(config).dump(2, ' ', false, replace));
      } else {
        fmt::print("{}", config_to_yaml(config));
      }
      return success;
    };
  });
}

}  // namespace gyre::cli
