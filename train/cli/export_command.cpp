#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/command.h"
#include "train/exchange.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  ExportOptions work;
  bool json = false;
};

void print_json(const ExportOptions& work, const ExportResult& result) {
  const nlohmann::ordered_json json{{"model", result.model},       {"checkpoint", result.checkpoint.string()},
                                    {"weights", result.weights},   {"layout", work.layout},
                                    {"file", work.file.string()},  {"tensors", result.tensors},
                                    {"values", result.parameters}, {"bytes", result.bytes}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const ExportOptions& work, const ExportResult& result) {
  fmt::print("model   {} of {} ({} weights)\n", result.model, result.checkpoint.string(), result.weights);
  fmt::print("layout  {}, {} tensors of {} values\n", work.layout, result.tensors,
             with_commas(result.parameters));
  fmt::print("file    {}, {} bytes\n", work.file.string(), with_commas(result.bytes));
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  ExportOptions& work = options->work;
  CLI::App* command = app.add_subcommand("export", "write the weights of a checkpoint for another program");
  command->add_option("CHECKPOINT", work.checkpoint, "checkpoint or run directory")
      ->type_name("")
      ->required();
  command->add_option("FILE", work.file, "safetensors file to write")->type_name("")->required();
  add_choice(*command, "--layout", work.layout, {"gyre", "timm", "released"},
             "names and shapes: of gyre, of timm, or of the authors of EQ-ViT", "gyre");
  add_choice(*command, "--weights", work.weights, {"ema", "raw"}, "averaged or raw weights", "ema");
  add_json_option(*command, options->json);
  command->callback([options, &action] {
    action = [options] {
      const ExportResult result = export_checkpoint(options->work);
      if (options->json) {
        print_json(options->work, result);
      } else {
        print_text(options->work, result);
      }
      return success;
    };
  });
}

}  // namespace gyre::cli
