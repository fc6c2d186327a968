#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/transfer.h"
#include "train/checkpoint.h"
#include "train/config.h"

namespace gyre {

/// The checkpoint that finetune.checkpoint names, without its optimiser; FileError as find_checkpoint and
/// read_checkpoint.
Checkpoint read_parent(const FinetuneConfig& config);

/// The model section of a fine-tuning run: the parent's, on which `given` sets what does not belong to the
/// layers (drop_path, dropout, backend, products, window). The data decides image_size and classes.
/// ConfigError naming key, both values and `origin`, the parent, where a given key contradicts it.
ModelConfig adopt_model(const ModelConfig& given, const ModelConfig& parent, const std::string& origin);

/// Copies the parent's weights into a model of the run, with a new head where finetune.head and the classes
/// ask for one (auto: other names or another count). Throws ConfigError for a head that cannot be kept,
/// FileError for weights that do not fit.
Transfer take_over(Model& model, const Checkpoint& parent, const FinetuneConfig& config,
                   const std::vector<std::string>& class_names);
/// What was taken over, in aligned lines: the parent, how many tensors were kept, and each that was not; with
/// `all` each that was, too.
std::string describe(const Checkpoint& parent, const Transfer& transfer, bool all);

/// Whether a pattern means a parameter: `*` any text, `?` one character; a pattern that means the beginning
/// of a name up to a dot means the name.
bool matches_name(std::string_view pattern, std::string_view name);
/// Takes the parameters that the patterns mean out of training: no gradient, no optimiser state. ConfigError
/// for a pattern that means none, and where nothing is left to train.
void freeze_parameters(Module& model, std::span<const std::string> patterns);
/// Layer-wise decay: the rate of a parameter is decay^(n + 1 - k) of the learning rate, k = 0 before the
/// first of n blocks, 1 … n in the blocks, n + 1 behind the last.
void scale_rates(Module& model, double decay);

}  // namespace gyre
