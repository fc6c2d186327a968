#pragma once

#include <string>
#include <vector>

#include "core/safetensors.h"
#include "models/model.h"

namespace gyre {

/// One parameter of a model that took over another's weights.
struct TakenTensor {
  std::string name;
  Shape from, to;  ///< `from` is empty where the other model has none
};

struct Transfer {
  std::vector<TakenTensor> kept;         ///< as they were
  std::vector<TakenTensor> resampled;    ///< position tables of another grid or window
  std::vector<TakenTensor> initialised;  ///< as the model began: a new head
};

/// Copies the `weights` of a model with the settings `from` into `model`, which has the same layers but may
/// have another image size, window or number of classes. Position tables are resampled on their grid, which
/// both settings state: a full table as it is, a quarter table spread to the whole grid and then restricted,
/// a class token's entry is kept; relative position tables of windows likewise. With `new_head` all of head.*
/// is left as `model` has it. Throws Error naming the first tensor that is missing, unknown or misshapen,
/// before anything is changed.
Transfer transfer_weights(Model& model, const ModelConfig& from, const TensorMap& weights, bool new_head);

}  // namespace gyre
