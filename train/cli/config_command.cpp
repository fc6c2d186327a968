
#include <CLI/App.hpp>

#include "train/cli/command.h"
#include "train/config.h"

namespace gyre::cli {

void add_config_command(CLI::App& app, Action& action) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("config", "list every configuration key, or print a file with all values filled in");
  command
      ->add_option("CONFIG", options->config,
                   "YAML file; none: every key with default, legal values and meaning")
      ->type_name("");
  add_set_option(*command, options->overrides);
  command->callback([options, &action] {
    action = [options] {
      if (!options->config.empty()) {
        fmt::print("{}", config_to_yaml(load_config(options->config, options->overrides)));
      } else if (options->overrides.empty()) {
        fmt::print("{}", config_help());
      } else {
        Config config;
        for (const std::string& text : options->overrides) apply_override(config, text);
        fmt::print("{}", config_to_yaml(config));
      }
      return success;
    };
  });
}

}  // namespace gyre::cli
