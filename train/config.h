#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/data_config.h"
#include "models/model_config.h"

namespace gyre {

/// A configuration that cannot be used: the text is one line that begins with file and line, or with the
/// `--set` text.
class ConfigError : public Error {
 public:
  using Error::Error;
};

struct OptimizerConfig {
  std::string name = "adamw";  ///< adamw | sgd
  double learning_rate = 2e-3;
  double weight_decay = 0.05;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
};

struct ScheduleConfig {
  std::string shape = "cosine";  ///< cosine | constant
  double warmup = 0.05;          ///< fraction of all updates
  double warmup_start = 1e-3;    ///< fraction of the learning rate
  double final = 1e-2;           ///< fraction of the learning rate
};

struct TrainConfig {
  std::int64_t epochs = 10;
  std::string time_budget;        ///< "90s", "4m", "1h30m" or empty; replaces epochs
  std::int64_t updates = 0;       ///< 0: from epochs or time_budget
  std::int64_t batch_size = 32;   ///< samples per update
  std::int64_t accumulation = 1;  ///< parts of a batch, one after the other
  double label_smoothing = 0.1;
  double clip_norm = 1.0;    ///< 0: off
  double ema_decay = 0.999;  ///< 0: off
  std::string amp = "off";   ///< off | bf16 | fp16
  std::uint64_t seed = 0;
  bool deterministic = true;    ///< on CUDA: kernels by rule, not by speed
  std::int64_t eval_every = 1;  ///< epochs
  std::int64_t bad_steps = 10;  ///< consecutive non-finite losses that stop the run
  std::int64_t log_every = 50;  ///< updates
  int threads = 0;              ///< 0: all
};

struct CheckpointConfig {
  double every_minutes = 5;       ///< 0: only at the end of epochs
  std::int64_t every_epochs = 1;  ///< 0: only the best and the last
  bool keep_epochs = false;       ///< every checkpoint stays, not only last and best
};

/// What a run takes over from a checkpoint, and how it treats it.
struct FinetuneConfig {
  std::string checkpoint;           ///< path as find_checkpoint takes it; empty: weights from scratch
  std::string weights = "ema";      ///< ema | raw
  std::string head = "auto";        ///< auto | keep | new
  double layer_decay = 1;           ///< in (0, 1]; see scale_rates
  std::vector<std::string> freeze;  ///< see freeze_parameters
};

/// Everything a run is made of; one section per member.
struct Config {
  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  CheckpointConfig checkpoint;
  FinetuneConfig finetune;
};

/// Reads a YAML file, then applies `overrides` ("section.key=value") in order. ConfigError for anything that
/// is missing, unknown, given twice, of the wrong type or out of range, and for both train.time_budget and
/// train.epochs in one file without train.updates. With finetune.checkpoint the model section is left as
/// given, neither resolved nor checked: the checkpoint decides the rest.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});
/// The same from text; `origin` stands for the file in errors.
Config parse_config(std::string_view text, const std::string& origin);
/// Sets one key from "section.key=value". Of train.epochs, time_budget and updates, the one set last counts.
void apply_override(Config& config, std::string_view text);
/// All sections and keys as YAML; parse_config gives back the same values, bit for bit.
std::string config_to_yaml(const Config& config);
/// One line per key: default, legal values and meaning.
std::string config_help();

/// Seconds of "90s", "4m", "1h30m", "0.5h"; throws ValueError for other texts, 0 and more than 1000h.
double parse_duration(std::string_view text);

}  // namespace gyre
