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
