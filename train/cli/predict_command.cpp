#include <cstdio>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "train/cli/command.h"
#include "train/predict.h"

namespace gyre::cli {
namespace {

struct Options {
  CommonOptions common;
  std::string checkpoint;
  std::vector<std::string> images;
  PredictOptions predict;
};

void print_json(const std::vector<Prediction>& predictions) {
  auto list = nlohmann::ordered_json::array();
  for (const Prediction& prediction : predictions) {
    if (!prediction.error.empty()) {
      list.push_back({{"file", prediction.file.string()}, {"error", prediction.error}});
      continue;
    }
    auto classes = nlohmann::ordered_json::array();
    for (const ClassProbability& c : prediction.classes) {
      classes.push_back({{"index", c.index}, {"name", c.name}, {"probability", c.probability}});
    }
    list.push_back({{"file", prediction.file.string()}, {"classes", classes}});
  }
  // File names need not be UTF-8.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print("{}\n", nlohmann::ordered_json{{"predictions", list}}.dump(2, ' ', false, replace));
}

void print_text(const std::vector<Prediction>& predictions) {
  for (const Prediction& prediction : predictions) {
    if (!prediction.error.empty()) continue;
    fmt::print("{}\n", prediction.file.string());
    for (const ClassProbability& c : prediction.classes) {
      fmt::print("  {:6.2f} %  {:>4}  {}\n", 100 * c.probability, c.index, c.name);
    }
  }
}

/// One line on standard error per picture that could not be read; true if there are any.
bool print_errors(const std::vector<Prediction>& predictions) {
  bool any = false;
  std::fflush(stdout);
  for (const Prediction& prediction : predictions) {
    if (prediction.error.empty()) continue;
    any = true;
    std::string text = prediction.error;
    for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;  // file names may hold any
    fmt::print(stderr, "gyre: error: {}\n", text);
  }
  return any;
}

int run(Options& options) {
  options.predict.device = prepare_machine(options.common, 0, false);
  options.predict.checkpoint = options.checkpoint;
  options.predict.images.assign(options.images.begin(), options.images.end());
  if (!options.common.backend.empty())
    options.predict.backend = kernels::parse_eq_backend(options.common.backend);
  const std::vector<Prediction> predictions = predict(options.predict);
  if (options.common.json) {
    print_json(predictions);
  } else {
    print_text(predictions);
  }
  return print_errors(predictions) ? failure : success;
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("predict", "name the classes of pictures");
  command->add_option("CHECKPOINT", options->checkpoint, "checkpoint or run directory")
      ->type_name("")
      ->required();
  command->add_option("IMAGE", options->images, "JPEG, PNG or other pictures")->type_name("")->required();
  add_number(*command, "--top", options->predict.top, {1, 1'000'000}, "classes per picture");
  add_choice(*command, "--weights", options->predict.weights, {"ema", "raw"}, "averaged or raw weights",
             "ema");
  add_common_options(*command, options->common);
  add_backend_option(*command, options->common);
  add_pin_option(*command, options->common);
  add_tune_option(*command, options->common);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gyre::cli
