#include <CLI/App.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/tune.h"
#include "core/file.h"
#include "train/cli/command.h"
#include "train/cli/tuning.h"
#include "train/config.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  CommonOptions common;
  std::vector<std::string> groups{"c4"};
  std::string budget = "2m";
  std::string out;
};

/// How many cells of the table take each implementation, and how many differ from the fixed rule.
struct Tally {
  std::map<std::string, std::int64_t> taken;
  std::int64_t changed = 0;
};

Tally tally_of(const TuneTable& table) {
  const auto choices = choices_of(table);
  Tally tally;
  for (const TuneCell& cell : table.cells) {
    const kernels::EqShape shape{Group::get(cell.group), cell.direction,    cell.rows,
                                 cell.channels_in,       cell.channels_out, table.key.threads};
    const kernels::EqTable::Choice* choice = choices->find(shape);
    ++tally.taken[std::string(name_of(choice->any))];
    tally.changed += choice->any != fixed_eq_choice(shape, false);
  }
  return tally;
}

int run(Options& options) {
  TuneOptions tuning;
  tuning.groups = options.groups;
  try {
    tuning.budget = parse_duration(options.budget);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--budget: {}", error.what()));
  }
  const fs::path out = options.out.empty() ? default_tune_table() : fs::path(options.out);
  require<UsageError>(!out.empty(), "--out is needed where neither HOME nor XDG_CONFIG_HOME is set");
  options.common.tune_table = "none";  // every implementation is asked for by name
  prepare_cpu(options.common, 0, true, "tune");
  if (out.has_parent_path()) {
    std::error_code error;
    fs::create_directories(out.parent_path(), error);
    require<FileError>(!error, "{}: cannot create: {}", out.parent_path().string(), error.message());
  }
  const TuneKey key = this_tune_key(GYRE_VERSION);
  const std::int64_t layers = tune_grid_size(tuning);
  if (!options.common.json) {
    fmt::print("machine  {}, {}, {}, {} thread{}\n", key.cpu, key.simd, key.library, key.threads,
               key.threads == 1 ? "" : "s");
    fmt::print("tuning   {} layers of {}, at most {}\n", layers, fmt::join(tuning.groups, ", "),
               format_duration(tuning.budget));
    std::fflush(stdout);
  }
  ProgressLine line(stderr, !options.common.json);
  std::int64_t measured = 0;
  const TuneTable table = tune(tuning, key, [&](std::int64_t done, const TuneCell& last) {
    measured = done;
    line.update(
        "tune", static_cast<double>(done) / static_cast<double>(layers),
        fmt::format("{} of {}  {} x {} x {}", done, layers, last.rows, last.channels_in, last.channels_out));
  });
  line.clear();
  write_file_atomically(out, encode_tune_table(table));
  const Tally tally = tally_of(table);
  if (options.common.json) {
    const nlohmann::ordered_json json{{"file", out.string()},   {"tune_table", tune_table_id(table)},
                                      {"layers", layers},       {"measured", measured},
                                      {"choices", tally.taken}, {"changed", tally.changed}};
    fmt::print("{}\n", json.dump(2));
    return success;
  }
  if (measured < layers)
    fmt::print("time     is up after {} of {} layers; the others follow the fixed rule\n", measured, layers);
  std::string taken;
  for (const auto& [name, count] : tally.taken)
    taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", name, count);
  fmt::print("choices  {}; {} of {} differ from the fixed rule\n", taken, tally.changed, table.cells.size());
  fmt::print("table    {} in {}\n", tune_table_id(table), out.string());
  return success;
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("tune", "time the implementations of EQ-Linear on this machine and keep a table");
  const auto names = Group::names();
  const auto read = [options, names](const std::vector<std::string>& words) {
    for (const std::string& word : words)
      if (std::find(names.begin(), names.end(), word) == names.end())
        throw CLI::ValidationError("--group",
                                   fmt::format("'{}' is not one of {}", word, fmt::join(names, ", ")));
    options->groups = words;
  };
  command
      ->add_option_function<std::vector<std::string>>("--group", read, "symmetries to measure (default: c4)")
      ->type_name("NAME,NAME,…")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--budget", options->budget, "longest time, such as 30s or 5m (default: 2m)")
      ->type_name("TIME");
  command
      ->add_option("--out", options->out,
                   "file to write (default: gyre/tune.json in $XDG_CONFIG_HOME or ~/.config, which every "
                   "command reads)")
      ->type_name("FILE");
  add_common_options(*command, options->common);
  add_pin_option(*command, options->common);
  command->footer(
      "A table holds for one machine, thread count and version of gyre and its library; without a fitting "
      "one "
      "kernels follow a fixed rule.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gyre::cli
