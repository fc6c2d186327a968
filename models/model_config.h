#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/group.h"

namespace gyre {

/// The `model:` section: sizes of a vision transformer. Plain data; nothing is checked before validate().
struct ModelConfig {
  std::string name = "eq_vit";   ///< "vit", "eq_vit", "swin", "eq_swin", or a named size: see model_names()
  std::int64_t image_size = 32;  ///< pixels, square
  std::int64_t in_channels = 1;  ///< colours
  std::int64_t patch_size = 8;   ///< pixels, square; divides image_size
  std::int64_t width = 64;  ///< all channels of a token: channels per group element × group order; of the
                            ///< first stage in swin, then doubled from stage to stage
  std::int64_t depth = 3;   ///< blocks; in swin the sum of depths
  std::vector<std::int64_t> depths;  ///< swin only: blocks of each stage
  std::int64_t heads = 4;    ///< of attention, doubled as width is; width / heads is a multiple of the
                             ///< group order
  std::int64_t window = 0;   ///< swin only: tokens along a side of the attention windows
  bool approximate = false;  ///< eq_swin only: allows windows that break the symmetry
  double mlp_ratio = 4.0;    ///< hidden width of the MLP / width
  std::int64_t classes = 10;
  std::string group = "c4";        ///< eq_vit and eq_swin; any group with an image action
  std::string pos_embed = "full";  ///< "full", "quarter" (eq_vit on an even grid), or "none" (swin)
  std::string pool = "mean";       ///< "mean" over tokens, or "token" (vit and eq_vit: class token)
  double drop_path = 0;            ///< rate of the last block, rising linearly from 0; in [0, 1)
  double dropout = 0;              ///< in [0, 1); whole orbits in equivariant models
  std::string backend =
      "auto";  ///< of EQ-Linear: "auto", "flash" or "naive"; vit and swin have no choice and ignore it
  std::int64_t products =
      0;  ///< of the flash form: 0 for the fewest, or the count of a form of the group (c4: 5, 6)

  /// Keys that the user set, by field name. A named size fills a field unless it is listed here or differs
  /// from the defaults above; so code may simply assign, and only who parses text must list keys that repeat
  /// a default.
  std::set<std::string, std::less<>> given;
};

/// Fills the numbers of a named size or of the swin families and, for vit and swin, group = "c1"; user
/// settings win. Idempotent. Throws ValueError for an unknown name, with the nearest known one.
ModelConfig resolve(ModelConfig config);
/// Throws ValueError or ShapeError, one line that names the field, the value and legal neighbours. Takes a
/// resolved config.
void validate(const ModelConfig& config);

/// "vit", "eq_vit", "swin" or "eq_swin" for any known name; throws like resolve.
std::string_view family_of(std::string_view name);
bool is_equivariant(const ModelConfig& config);
/// Windows instead of attention over all tokens: swin and eq_swin.
bool is_swin(const ModelConfig& config);
/// Logits are exactly invariant under the group: false for ordinary models, and where windows break the
/// symmetry.
bool is_exact(const ModelConfig& config);
/// The same sizes as an ordinary model, or as an equivariant one (of group c4 if it was an ordinary model).
ModelConfig ordinary_twin(ModelConfig config);
ModelConfig equivariant_twin(ModelConfig config);
/// The symmetry group of the model: "c1" for vit and swin.
const Group& group_of(const ModelConfig& config);
/// Patches along one side.
std::int64_t grid_of(const ModelConfig& config);
/// Tokens of one image in the first block, the class token included.
std::int64_t tokens_of(const ModelConfig& config);
/// Hidden width of the MLP in the first stage.
std::int64_t hidden_of(const ModelConfig& config);

/// Blocks of equal size: the stages of swin; vit has one.
struct Stage {
  std::int64_t grid = 0;  ///< tokens along a side
  std::int64_t width = 0, depth = 0, heads = 0, hidden = 0;
  std::int64_t window = 0;  ///< tokens along a side; 0: attention over all tokens
  std::int64_t shift = 0;   ///< of the windows of every second block, beginning with the second
};
/// Takes a resolved config; windows are no larger than the grid, and one that fills the grid is not moved.
std::vector<Stage> stages_of(const ModelConfig& config);

/// Every known name: the families, then the named sizes.
std::vector<std::string_view> model_names();

}  // namespace gyre
