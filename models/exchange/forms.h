#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "models/model.h"

namespace gyre::exchange {

using Convert = std::function<Tensor(const Tensor&)>;

/// One way in which a file may hold a parameter.
struct Form {
  std::string name;
  Shape shape;
  Convert read = {};   ///< f32 of `shape` → f32 of the parameter's; empty: only the shape changes
  Convert write = {};  ///< back
  bool loose = false;  ///< extents of 1 may come or go
  /// What `read` does beyond moving values, behind "N tensors": "of frequency planes, …"; empty: nothing.
  std::string_view conversion = {};
};

/// The forms of every parameter, by its name in the model; the first is the one that is written.
using Forms = std::map<std::string, std::vector<Form>>;

/// Every parameter under its own name and shape.
Forms own_forms(Model& model);
/// Older files (`merging_first` false) keep patch merging at the end of a stage instead of at the start of
/// the next, and the head without ".fc".
Forms timm_forms(Model& model, bool merging_first);
/// Throws ValueError for a model that the layout cannot hold.
Forms released_forms(Model& model);

/// The ordinary ViT that computes what an EQ-ViT does, with every matrix written out, in timm's names: larger
/// by the order of the group. ValueError for other models.
TensorMap written_out(Model& model);

/// "layers.N.downsample.…" as the stage before N has it; other names as they are.
std::string merging_at_end(const std::string& name);

}  // namespace gyre::exchange
