#include "models/named_sizes.h"

#include <algorithm>

#include <fmt/format.h>

namespace gyre {

namespace {

struct VitSize {
  std::string_view suffix;
  std::int64_t width, depth, heads;
};
constexpr VitSize vit_sizes[] = {
    {"t", 384, 12, 3}, {"s", 480, 12, 6}, {"b", 768, 12, 12}, {"l", 1024, 24, 16}, {"h", 1280, 32, 16}};

struct SwinSize {
  std::string_view suffix;
  std::int64_t width, third;  ///< blocks of the third stage, after 2 and 2 and before 2
};
constexpr SwinSize swin_sizes[] = {
    {"t", 96, 6}, {"s", 96, 18}, {"b", 128, 18}, {"l", 192, 18}, {"h", 352, 18}};

/// timm's names of networks of these families.
struct TimmVit {
  std::string_view name;
  std::int64_t image, patch, width, depth, heads;
};
constexpr TimmVit timm_vits[] = {
    {"vit_tiny_patch16_224", 224, 16, 192, 12, 3},    {"vit_tiny_patch16_384", 384, 16, 192, 12, 3},
    {"vit_small_patch16_224", 224, 16, 384, 12, 6},   {"vit_small_patch16_384", 384, 16, 384, 12, 6},
    {"vit_small_patch32_224", 224, 32, 384, 12, 6},   {"vit_small_patch32_384", 384, 32, 384, 12, 6},
    {"vit_base_patch8_224", 224, 8, 768, 12, 12},     {"vit_base_patch16_224", 224, 16, 768, 12, 12},
    {"vit_base_patch16_384", 384, 16, 768, 12, 12},   {"vit_base_patch32_224", 224, 32, 768, 12, 12},
    {"vit_base_patch32_384", 384, 32, 768, 12, 12},   {"vit_large_patch16_224", 224, 16, 1024, 24, 16},
    {"vit_large_patch16_384", 384, 16, 1024, 24, 16}, {"vit_large_patch32_384", 384, 32, 1024, 24, 16},
    {"vit_huge_patch14_224", 224, 14, 1280, 32, 16}};

struct TimmSwin {
  std::string_view name;
  std::int64_t image, window, width, third;
};
constexpr TimmSwin timm_swins[] = {
    {"swin_tiny_patch4_window7_224", 224, 7, 96, 6},    {"swin_small_patch4_window7_224", 224, 7, 96, 18},
    {"swin_base_patch4_window7_224", 224, 7, 128, 18},  {"swin_base_patch4_window12_384", 384, 12, 128, 18},
    {"swin_large_patch4_window7_224", 224, 7, 192, 18}, {"swin_large_patch4_window12_384", 384, 12, 192, 18}};
constexpr std::int64_t timm_classes = 1000;  ///< of ImageNet

constexpr std::int64_t swin_head = 32;  ///< channels of a head

std::vector<NamedSize> all_sizes() {
  std::vector<NamedSize> sizes;
  const auto vit = [&](std::string_view family) {
    for (const VitSize& s : vit_sizes)
      sizes.push_back({.name = fmt::format("{}_{}", family, s.suffix),
                       .family = family,
                       .image_size = 224,
                       .patch_size = 16,
                       .width = s.width,
                       .heads = s.heads,
                       .classes = 100,
                       .depth = s.depth});
  };
  const auto swin = [&](std::string_view family, std::string_view ending, std::int64_t window,
                        bool approximate) {
    for (const SwinSize& s : swin_sizes)
      sizes.push_back({.name = fmt::format("{}_{}{}", family, s.suffix, ending),
                       .family = family,
                       .image_size = 224,
                       .patch_size = 4,
                       .width = s.width,
                       .heads = s.width / swin_head,
                       .classes = 100,
                       .depths = {2, 2, s.third, 2},
                       .window = window,
                       .approximate = approximate});
  };
  vit("vit");
  vit("eq_vit");
  swin("swin", "", 7, false);
  swin("swin", "_w14", 14, false);
  swin("eq_swin", "", 14, false);
  swin("eq_swin", "_w7", 7, true);
  for (const TimmVit& s : timm_vits)
    sizes.push_back({.name = std::string(s.name),
                     .family = "vit",
                     .image_size = s.image,
                     .patch_size = s.patch,
                     .width = s.width,
                     .heads = s.heads,
                     .classes = timm_classes,
                     .depth = s.depth});
  for (const TimmSwin& s : timm_swins)
    sizes.push_back({.name = std::string(s.name),
                     .family = "swin",
                     .image_size = s.image,
                     .patch_size = 4,
                     .width = s.width,
                     .heads = s.width / swin_head,
                     .classes = timm_classes,
                     .depths = {2, 2, s.third, 2},
                     .window = s.window});
  return sizes;
}

}  // namespace

std::span<const NamedSize> named_sizes() {
  static const std::vector<NamedSize> sizes = all_sizes();
  return sizes;
}

const NamedSize* find_named_size(std::string_view name) {
  const auto sizes = named_sizes();
  const auto found =
      std::find_if(sizes.begin(), sizes.end(), [&](const NamedSize& s) { return s.name == name; });
  return found == sizes.end() ? nullptr : &*found;
}

}  // namespace gyre
