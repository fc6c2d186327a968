#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "kernels/eq_linear.h"
#include "train/parse.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gyre::cli {

/// A wrong use of the program that options alone cannot tell; exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Options of every command that computes; --backend and --no-pin of those where they mean something.
struct CommonOptions {
  std::string device = "auto";
  int threads = 0;  ///< 0: as configured, else one per core
  bool json = false;
  std::string backend;  ///< empty: as configured
  bool no_pin = false;
  std::string tune_table;  ///< file, "none", or empty: as load_tune_table finds it
};

/// Work that the parsed command line asks for; returns the exit code.
using Action = std::function<int()>;

enum ExitCode { success = 0, failure = 1, wrong_use = 2, interrupted = 130 };

// Each adds one command, which sets `action` when it is chosen.
void add_train_command(CLI::App& app, Action& action);
void add_finetune_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_predict_command(CLI::App& app, Action& action);
void add_models_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
// Below `bench`.
void add_bench_op_command(CLI::App& bench, Action& action);
void add_bench_model_commands(CLI::App& bench, Action& action);
void add_config_command(CLI::App& app, Action& action);
void add_import_command(CLI::App& app, Action& action);
void add_export_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);

void add_json_option(CLI::App& command, bool& json);
/// --device, --threads and --json.
void add_common_options(CLI::App& command, CommonOptions& options);
void add_backend_option(CLI::App& command, CommonOptions& options);
void add_pin_option(CLI::App& command, CommonOptions& options);
/// --tune-table.
void add_tune_option(CLI::App& command, CommonOptions& options);
/// --set, repeatable.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);
/// An option with one word of `choices`; `shown` is the default as help tells it.
void add_choice(CLI::App& command, const std::string& name, std::string& target,
                const std::vector<std::string>& choices, const std::string& doc, const std::string& shown);
/// Reads a number by parse_number.
void add_number(CLI::App& command, const std::string& name, int& target, const Range<int>& range,
                const std::string& doc);
void add_number(CLI::App& command, const std::string& name, std::int64_t& target,
                const Range<std::int64_t>& range, const std::string& doc);
void add_number(CLI::App& command, const std::string& name, double& target, const Range<double>& range,
                const std::string& doc);

/// The text of a usage error: the unknown command or option with the nearest known one, else what the parser
/// says.
std::string explain(const CLI::App& app, const std::string& parser_message);

/// Sets the thread count (that of the options, else `configured`, else one per core) and pins the threads if
/// `pin`, unless
/// --no-pin or GYRE_PIN=0 forbids it; then loads the table of kernel choices. Returns the device.
Device prepare_machine(const CommonOptions& options, int configured, bool pin);

/// The same for a command that has no CUDA form: DeviceError if --device asks for one.
void prepare_cpu(const CommonOptions& options, int configured, bool pin, std::string_view command);

/// Runs the program: parses, acts, prints errors as one line "gyre: error: …" on standard error.
int run_program(int argc, char** argv);

}  // namespace gyre::cli
