#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/command.h"
#include "train/exchange.h"
#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Options {
  ImportOptions work;
  bool json = false;
};

void print_json(const ImportResult& result) {
  const nlohmann::ordered_json json{{"model", result.model},
                                    {"layout", result.layout},
                                    {"checkpoint", result.checkpoint.string()},
                                    {"tensors", result.tensors},
                                    {"params", result.parameters},
                                    {"classes", result.classes},
                                    {"mean", result.preprocessing.mean},
                                    {"std", result.preprocessing.std},
                                    {"notes", result.notes}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const ImportResult& result) {
  fmt::print("model       {}, {} parameters, {} classes\n", result.model, with_commas(result.parameters),
             result.classes);
  fmt::print("layout      {}, {} tensors\n", result.layout, result.tensors);
  fmt::print("pixels      {} px, mean {}, std {}\n", result.preprocessing.size,
             fmt::join(result.preprocessing.mean, " "), fmt::join(result.preprocessing.std, " "));
  for (const std::string& note : result.notes) fmt::print("note        {}\n", note);
  fmt::print("checkpoint  {}\n", result.checkpoint.string());
}

/// Numbers separated by commas.
void add_list(CLI::App& command, const std::string& name, std::vector<double>& target,
              const std::string& doc) {
  const auto read = [&target, name](const std::string& text) {
    try {
      target.clear();
      for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        target.push_back(parse_number<double>(text.substr(at, end - at)));
        at = end + 1;
      }
    } catch (const ValueError& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  command.add_option_function<std::string>(name, read, doc)->type_name("N,N,N");
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  ImportOptions& work = options->work;
  CLI::App* command = app.add_subcommand("import", "make a checkpoint of the weights of another program");
  command
      ->add_option("FILE", work.file, "safetensors file (scripts/pth_to_safetensors.py makes one of a .pth)")
      ->type_name("")
      ->required();
  command
      ->add_option("--model", work.model,
                   "name of the model, or a YAML file (default: what a file that gyre wrote says)")
      ->type_name("NAME|CONFIG");
  add_choice(*command, "--layout", work.layout, {"auto", "gyre", "timm", "released"},
             "names and shapes of the file: of gyre, of timm, or of the authors of EQ-ViT", "auto");
  command->add_option("--out", work.out, "the new checkpoint (default: FILE without its ending)")
      ->type_name("DIR");
  const char* pixels = "(default: 0.5 for vit, ImageNet's for the others, the file's own if gyre wrote it)";
  add_list(*command, "--mean", work.mean, fmt::format("mean of each colour in [0, 1] {}", pixels));
  add_list(*command, "--std", work.std, fmt::format("deviation of each colour {}", pixels));
  command->add_option("--classes", work.classes, "text file with a class name per line (default: unknown)")
      ->type_name("FILE");
  add_set_option(*command, work.overrides);
  add_json_option(*command, options->json);
  command->callback([options, &action] {
    action = [options] {
      const ImportResult result = import_checkpoint(options->work);
      if (options->json) {
        print_json(result);
      } else {
        print_text(result);
      }
      return success;
    };
  });
}

}  // namespace gyre::cli
