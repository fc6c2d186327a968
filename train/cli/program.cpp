#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "kernels/cpu/simd.h"
#include "train/cli/command.h"
#include "train/config.h"

namespace gyre::cli {
namespace {

constexpr const char* version = "gyre " GYRE_VERSION;

std::string output_failure(const std::string& reason) {
  return fmt::format("cannot write standard output: {}", reason);
}

int report(ExitCode code, std::string text) {
  // One line, whatever a library put into its message.
  for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
  while (text.ends_with(' ')) text.pop_back();
  std::fflush(stdout);
  // Where standard error takes nothing, the exit code alone tells; an exception here would end in abort.
  const std::string line = "gyre: error: " + text + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

/// A set that no machine has is wrong use; one that this machine lacks is a failure.
void require_simd() {
  try {
    kernels::cpu::simd();
  } catch (const ValueError& error) {
    throw UsageError(error.what());
  }
}

int parse_and_run(CLI::App& app, Action& action, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return report(wrong_use, explain(app, error.what()));
  }
  if (!action) return report(wrong_use, "a command is required (see gyre --help)");
  require_simd();
  return action();
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app("gyre trains rotation-equivariant vision networks.", "gyre");
  app.set_version_flag("--version", version, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  // At least one, checked below: the parser's own text says "subcommand".
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(36);
  Action action;
  add_train_command(app, action);
  add_finetune_command(app, action);
  add_eval_command(app, action);
  add_predict_command(app, action);
  add_models_command(app, action);
  add_verify_command(app, action);
  add_bench_command(app, action);
  add_config_command(app, action);
  add_import_command(app, action);
  add_export_command(app, action);
  add_tune_command(app, action);
  add_devices_command(app, action);
  int code = failure;
  try {
    code = parse_and_run(app, action, argc, argv);
  } catch (const ConfigError& error) {
    code = report(wrong_use, error.what());
  } catch (const UsageError& error) {
    code = report(wrong_use, error.what());
  } catch (const std::bad_alloc&) {
    code = report(failure, "out of memory");
  } catch (const std::system_error& error) {
    // A print that fails throws the reason.
    if (std::ferror(stdout)) return report(failure, output_failure(error.code().message()));
    code = report(failure, error.what());
  } catch (const std::exception& error) {
    code = report(failure, error.what());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    code = report(code == success ? failure : ExitCode(code), output_failure(std::strerror(errno)));
  }
  return code;
}

}  // namespace gyre::cli
