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
  std::string name = "eq_vit";   ///< "vit", "eq_vit", or a named size: see model_names()
  std::int64_t image_size = 32;  ///< pixels, square
  std::int64_t in_channels = 1;  ///< colours
  std::int64_t patch_size = 8;   ///< pixels, square; divides image_size
  std::int64_t width = 64;       ///< all channels of a token: channels per group element × group order
  std::int64_t depth = 3;        ///< blocks
  std::int64_t heads = 4;        ///< of attention; width / heads is a multiple of the group order
  double mlp_ratio = 4.0;        ///< hidden width of the MLP / width
  std::int64_t classes = 10;
  std::string group = "c4";        ///< eq_vit only; any group with an image action
  std::string pos_embed = "full";  ///< "full", or "quarter" (eq_vit on an even grid)
  std::string pool = "mean";       ///< "mean" over tokens, or "token" (class token)
  double drop_path = 0;            ///< rate of the last block, rising linearly from 0; in [0, 1)
  double dropout = 0;              ///< in [0, 1); whole orbits in eq_vit
  std::string backend =
      "auto";  ///< of EQ-Linear: "auto", "flash" or "naive"; vit has no choice and ignores it
  std::int64_t products =
      0;  ///< of the flash form: 0 for the fewest, or the count of a form of the group (c4: 5, 6)

  /// Keys that the user set, by field name. A named size fills a field unless it is listed here or differs
  /// from the defaults above; so code may simply assign, and only who parses text must list keys that repeat
  /// a default.
  std::set<std::string, std::less<>> given;
};

/// Fills the numbers of a named size and, for the plain vit, group = "c1"; user settings win. Idempotent.
/// Throws ValueError for an unknown name, with the nearest known one.
ModelConfig resolve(ModelConfig config);
/// Throws ValueError or ShapeError, one line that names the field, the value and legal neighbours. Takes a
/// resolved config.
void validate(const ModelConfig& config);

/// "vit" or "eq_vit" for any known name; throws like resolve.
std::string_view family_of(std::string_view name);
bool is_equivariant(const ModelConfig& config);
/// The symmetry group of the model: "c1" for the plain vit.
const Group& group_of(const ModelConfig& config);
/// Patches along one side.
std::int64_t grid_of(const ModelConfig& config);
/// Tokens of one image, the class token included.
std::int64_t tokens_of(const ModelConfig& config);
/// Hidden width of the MLP.
std::int64_t hidden_of(const ModelConfig& config);
/// Every known name: the families "vit" and "eq_vit", then the named sizes.
std::vector<std::string_view> model_names();

}  // namespace gyre
