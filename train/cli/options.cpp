#include <algorithm>
#include <cstdlib>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "core/parallel.h"
#include "core/words.h"
#include "train/cli/command.h"
#include "train/cli/tuning.h"

namespace gyre::cli {
namespace {

/// CLI11 reads numbers in the locale of the user; these go through parse_number.
template <class T>
void add_parsed(CLI::App& command, const std::string& name, T& target, const Range<T>& range,
                const std::string& doc) {
  const auto read = [&target, range, name](const std::string& text) {
    try {
      target = parse_number<T>(text, range);
    } catch (const ValueError& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  command.add_option_function<std::string>(name, read, fmt::format("{} (default: {})", doc, target))
      ->type_name("N");
}

/// A device that no machine has is wrong use; one that this machine lacks is a failure.
void require_device_name(std::string_view name) {
  constexpr std::string_view prefix = "cuda:";
  const bool numbered = name.starts_with(prefix) && name.size() > prefix.size() &&
                        name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
  require<UsageError>(name == "auto" || name == "cpu" || name == "cuda" || numbered,
                      "--device: '{}' is not one of auto, cpu, cuda, cuda:N", name);
}

}  // namespace

void add_number(CLI::App& command, const std::string& name, int& target, const Range<int>& range,
                const std::string& doc) {
  add_parsed(command, name, target, range, doc);
}

void add_number(CLI::App& command, const std::string& name, std::int64_t& target,
                const Range<std::int64_t>& range, const std::string& doc) {
  add_parsed(command, name, target, range, doc);
}

void add_number(CLI::App& command, const std::string& name, double& target, const Range<double>& range,
                const std::string& doc) {
  add_parsed(command, name, target, range, doc);
}

void add_choice(CLI::App& command, const std::string& name, std::string& target,
                const std::vector<std::string>& choices, const std::string& doc, const std::string& shown) {
  const auto read = [&target, choices, name](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      const auto near = nearest_word(text, choices);
      throw CLI::ValidationError(name, fmt::format("'{}' is not one of {}{}", text, fmt::join(choices, ", "),
                                                   near ? fmt::format("; did you mean {}?", *near) : ""));
    }
    target = text;
  };
  command.add_option_function<std::string>(name, read, fmt::format("{} (default: {})", doc, shown))
      ->type_name(fmt::format("{}", fmt::join(choices, "|")));
}

void add_json_option(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "print one JSON object on standard output, nothing else (default: off)");
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  command
      .add_option("--device", options.device,
                  "where to compute; auto takes CUDA where it works and the command can (default: auto)")
      ->type_name("auto|cpu|cuda[:N]");
  add_number(command, "--threads", options.threads, {0, 1024},
             "threads of compute; 0: train.threads of the configuration, else one per core");
  add_json_option(command, options.json);
}

void add_backend_option(CLI::App& command, CommonOptions& options) {
  add_choice(command, "--backend", options.backend, {"auto", "flash", "naive", "fused", "packed"},
             "how EQ-Linear is computed", "as configured");
}

void add_pin_option(CLI::App& command, CommonOptions& options) {
  command.add_flag(
      "--no-pin", options.no_pin,
      "leave threads free to move between cores, as the environment GYRE_PIN=0 does (default: off)");
}

void add_tune_option(CLI::App& command, CommonOptions& options) {
  command
      .add_option(
          "--tune-table", options.tune_table,
          "take kernels from this table of gyre tune; none: from the fixed rule (default: environment "
          "GYRE_TUNE, else where gyre tune writes)")
      ->type_name("FILE|none");
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides,
                  "set one key of the configuration, such as --set train.epochs=3; repeatable")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
}

std::string explain(const CLI::App& app, const std::string& parser_message) {
  const CLI::App* command = &app;
  std::string name = "gyre";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  std::vector<std::string> rest = command->remaining(), known;
  std::stable_partition(rest.begin(), rest.end(),
                        [](const std::string& word) { return word.starts_with('-'); });
  if (rest.empty()) return fmt::format("{} (see {} --help)", parser_message, name);
  const std::string word = rest.front().substr(0, rest.front().find('='));
  std::string kind = "command";
  if (word.starts_with('-')) {
    kind = "option";
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
    }
  } else if (command->get_subcommands([](const CLI::App*) { return true; }).empty()) {
    return fmt::format("unexpected argument {} (see {} --help)", word, name);
  } else {
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
  }
  const auto near = nearest_word(word, known);
  return fmt::format("unknown {} {}{} (see {} --help)", kind, word,
                     near ? fmt::format(", did you mean {}?", *near) : "", name);
}

Device prepare_machine(const CommonOptions& options, int configured, bool pin) {
  require_device_name(options.device);
  const int threads = options.threads > 0 ? options.threads : configured;
  if (threads > 0) set_num_threads(threads);
  const char* allowed = std::getenv("GYRE_PIN");
  if (pin && !options.no_pin && !(allowed && std::string_view(allowed) == "0")) pin_threads();
  load_tune_table(options.tune_table);
  return parse_device(options.device);
}

void prepare_cpu(const CommonOptions& options, int configured, bool pin, std::string_view command) {
  const Device device = prepare_machine(options, configured, pin);
  require<DeviceError>(device.is_cpu() || options.device == "auto", "{} runs on the CPU only, not on {}",
                       command, device.str());
}

}  // namespace gyre::cli
