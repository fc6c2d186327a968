#include "train/banner.h"

#include <algorithm>

#include "core/parallel.h"
#include "kernels/eq_choice.h"
#include "models/counting.h"
#include "train/schedule.h"
#include "train/terminal.h"

namespace gyre {

std::string banner(const Config& config, const DataSplits& splits, Learner& learner,
                   std::int64_t steps_per_epoch, Device device) {
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<12} {}\n", label, value);
  };
  const ModelConfig& model = config.model;
  const ModelCounts counts = count_model(model);

  line("data", fmt::format("{}, {} classes: {} training, {} hold-out, {} test images", splits.train->name(),
                           splits.train->classes(), with_commas(splits.train->size()),
                           with_commas(splits.holdout ? splits.holdout->size() : 0),
                           with_commas(splits.test->size())));
  if (!splits.holdout) line("", "no hold-out: the best checkpoint is chosen on the test set");
  line("model",
       fmt::format("{} {}: {} parameters, {} FLOPs per image", model.name,
                   is_equivariant(model) ? fmt::format("({})", model.group) : "(not equivariant)",
                   with_commas(counts.parameters), format_si(static_cast<double>(counts.executed_flops))));
  const auto names = learner.model().kernel_names(config.train.batch_size, learner.amp());
  if (!names.empty()) {
    const std::string table = device.is_cpu() ? kernels::eq_table_id() : "";
    line("kernels", fmt::format("{} ({})", fmt::join(names, ", "),
                                table.empty() ? "fixed rule" : "tune table " + table));
  }
  if (learner.amp()) {
    const LossScaler* scaler = learner.scaler();
    line("precision", fmt::format("amp {}{}", config.train.amp,
                                  scaler ? fmt::format(", loss scale {:.0f}", scaler->scale()) : ""));
  }
  line("optimizer", fmt::format("{}; {}", learner.optimizer().name(), learner.optimizer().describe()));
  line("schedule",
       fmt::format("{} updates ({:.1f} epochs of {}), {} of them warm-up, learning rate {}",
                   with_commas(config.train.updates),
                   static_cast<double>(config.train.updates) / static_cast<double>(steps_per_epoch),
                   with_commas(steps_per_epoch),
                   with_commas(warmup_updates(config.train.updates, config.schedule)),
                   config.optimizer.learning_rate));
  line("machine", fmt::format("{}, {} threads, {} loader threads", describe(device), num_threads(),
                              config.data.workers));
  text += "settings\n";
  const std::string yaml = config_to_yaml(config);
  for (std::size_t at = 0; at < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', at), yaml.size());
    if (end > at) text += "  " + yaml.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace gyre
