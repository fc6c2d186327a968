#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// What a model's name stands for: the keys that it fills.
struct NamedSize {
  std::string name;
  std::string_view family;  ///< "vit", "eq_vit", "swin" or "eq_swin"
  std::int64_t image_size, patch_size, width, heads, classes;
  std::int64_t depth = 0;            ///< vit
  std::vector<std::int64_t> depths = {};  ///< swin
  std::int64_t window = 0;           ///< swin
  bool approximate = false;
};

/// The sizes of the Flash EQ-Linear paper (arXiv 2607.21271): vit_*, eq_vit_*, swin_* and eq_swin_*, each t,
/// s, b, l and h. Standard Swin has window 7. EQ-Swin has window 14, which is exact; the paper's window 7 is
/// eq_swin_*_w7, and swin_*_w14 the standard twin of eq_swin_*. All take 224 pixels and tell 100 classes. Then
/// timm's names of networks of these families, such as vit_small_patch16_224, with 1000 classes.
std::span<const NamedSize> named_sizes();
/// Null if there is none of this name.
const NamedSize* find_named_size(std::string_view name);

}  // namespace gyre
