#include <CLI/App.hpp>

#include "train/cli/command.h"

namespace gyre::cli {

void add_bench_command(CLI::App& app, Action& action) {
  CLI::App* bench =
      app.add_subcommand("bench", "compare standard, naive and flash layers in speed and memory");
  bench->require_subcommand(1);
  add_bench_op_command(*bench, action);
  add_bench_model_commands(*bench, action);
}

}  // namespace gyre::cli
