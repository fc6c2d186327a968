#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "models/model.h"

namespace gyre {

/// How a file names and shapes the weights of a model.
enum class Layout {
  gyre,     ///< the names of the module tree; any model
  timm,     ///< timm's, of 0.9 and older alike; ordinary models
  released  ///< the files of the authors of EQ-ViT (arXiv 2602.08047); equivariant models of the group c4
};
std::string_view name_of(Layout layout);
/// Throws ValueError for any other text.
Layout parse_layout(std::string_view name);
/// What the names in a file show, for a model of this kind.
Layout detect_layout(const TensorMap& file, const ModelConfig& config);

struct ImportedWeights {
  TensorMap weights;               ///< f32, complete, under the names of the model
  std::vector<std::string> notes;  ///< what was converted, averaged or left out, one line each
};
/// The weights of `model` as `file` holds them, in any floating type; the model is only asked for its tree.
/// Throws ValueError, one line with tensor, expected and found, for whatever is missing, unknown, given
/// twice, or of the wrong shape or type, and for a model that the layout cannot hold.
ImportedWeights import_weights(const TensorMap& file, Model& model, Layout layout);
/// The weights of `model` in a layout: import_weights gives them back bit for bit. An EQ-ViT in the layout
/// timm is written out as the ordinary ViT that computes the same, whose config is config_in(…). Throws
/// ValueError for a model that the layout cannot hold.
TensorMap export_weights(Model& model, Layout layout);
/// The model that export_weights writes for this one.
ModelConfig config_in(ModelConfig config, Layout layout);

/// Outputs of the head in a file of any layout.
std::optional<std::int64_t> classes_in(const TensorMap& file);

}  // namespace gyre
