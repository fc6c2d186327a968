#include "core/group_action.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"

namespace gyre {

namespace {

using Indices = std::vector<std::int64_t>;

void check_element(const Group& group, int t) {
  require<ValueError>(t >= 0 && t < group.order(), "{} has no element {}: elements are 0 to {}", group.name(),
                      t, group.order() - 1);
}

void check_grid(const Group& group, int t, std::int64_t height, std::int64_t width) {
  const bool swaps = group.image_element(t) % 2 == 1;
  require<ShapeError>(!swaps || height == width, "{} element {} needs a square grid, not {}x{}", group.name(),
                      t, height, width);
}

// Where each t of the result comes from: (gX)_t takes X_{g⁻¹t}.
Indices index_sources(const Group& group, int g) {
  Indices sources;
  for (int t = 0; t < group.order(); ++t) sources.push_back(group.mul(group.inv(g), t));
  return sources;
}

// Where each pixel of the result comes from: (g·x)(p) = x(g⁻¹p).
Indices pixel_sources(const Group& group, int g, std::int64_t height, std::int64_t width) {
  check_grid(group, g, height, width);
  Indices sources;
  sources.reserve(static_cast<std::size_t>(height * width));
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) {
      const Pixel from =
          act_on_pixel(group, group.inv(g), {i, j}, static_cast<int>(height), static_cast<int>(width));
      sources.push_back(from.row * width + from.col);
    }
  }
  return sources;
}

template <class Word>
void move_words(const void* source, void* result, std::int64_t outer, const Indices& rows,
                std::int64_t middle, const Indices& cols) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto width = static_cast<std::int64_t>(cols.size());
  const std::int64_t row_size = middle * width;
  parallel_for(0, outer * count, (1 << 14) / row_size + 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row = i / count * count + rows[static_cast<std::size_t>(i % count)];
      const Word* from = static_cast<const Word*>(source) + row * row_size;
      Word* to = static_cast<Word*>(result) + i * row_size;
      for (std::int64_t m = 0; m < middle; ++m, from += width, to += width)
        for (std::int64_t c = 0; c < width; ++c) to[c] = from[cols[static_cast<std::size_t>(c)]];
    }
  });
}

// result[o, r, m, c] = x[o, rows[r], m, cols[c]], x read as [outer, rows, middle, cols]; the shape stays.
Tensor move(const Tensor& x, const Indices& rows, std::int64_t middle, const Indices& cols) {
  if (!x.device().is_cpu()) return move(x.to(Device::cpu()), rows, middle, cols).to(x.device());
  Tensor result = Tensor::empty(x.shape(), x.dtype());
  if (x.numel() == 0) return result;
  const Tensor source = x.contiguous();
  const std::int64_t outer = x.numel() / (static_cast<std::int64_t>(rows.size() * cols.size()) * middle);
  const void* from = source.raw_data();
  void* to = result.raw_mutable_data();
  switch (size_of(x.dtype())) {
    case 1: move_words<std::uint8_t>(from, to, outer, rows, middle, cols); break;
    case 2: move_words<std::uint16_t>(from, to, outer, rows, middle, cols); break;
    case 4: move_words<std::uint32_t>(from, to, outer, rows, middle, cols); break;
    default: move_words<std::uint64_t>(from, to, outer, rows, middle, cols); break;
  }
  return result;
}

std::int64_t channels_of(std::string_view what, const Group& group, const Tensor& x) {
  require<ShapeError>(x.size(-1) % group.order() == 0,
                      "{}: width {} is not a multiple of {}, the order of {}", what, x.size(-1),
                      group.order(), group.name());
  return x.size(-1) / group.order();
}

}  // namespace

Pixel act_on_pixel(const Group& group, int t, Pixel p, int height, int width) {
  const int element = group.image_element(t);
  check_grid(group, t, height, width);
  require<ShapeError>(p.row >= 0 && p.row < height && p.col >= 0 && p.col < width,
                      "pixel ({}, {}) outside {}x{}", p.row, p.col, height, width);
  if (element >= 4) p.col = width - 1 - p.col;
  switch (element % 4) {
    case 1: return {width - 1 - p.col, p.row};
    case 2: return {height - 1 - p.row, width - 1 - p.col};
    case 3: return {p.col, height - 1 - p.row};
    default: return p;
  }
}

Tensor act_on_image(const Group& group, int g, const Tensor& image) {
  require<ShapeError>(image.rank() >= 2, "act_on_image takes [..., H, W], not {}", image.shape());
  return move(image, {0}, 1, pixel_sources(group, g, image.size(-2), image.size(-1)));
}

Tensor act_on_feature_map(const Group& group, int g, const Tensor& map) {
  require<ShapeError>(map.rank() >= 3 && map.size(-3) == group.order(),
                      "act_on_feature_map of {} takes [..., {}, H, W], not {}", group.name(), group.order(),
                      map.shape());
  const Indices pixels = pixel_sources(group, g, map.size(-2), map.size(-1));
  return move(map, index_sources(group, g), 1, pixels);
}

Tensor act_on_tokens(const Group& group, int g, const Tensor& tokens, int height, int width, int prefix) {
  require<ShapeError>(height >= 0 && width >= 0 && prefix >= 0,
                      "act_on_tokens of a {}x{} grid after {} tokens", height, width, prefix);
  const std::int64_t count = prefix + std::int64_t{height} * width;
  require<ShapeError>(tokens.rank() == 3 && tokens.size(1) == count,
                      "act_on_tokens takes [B, {} + {}x{}, C*T], not {}", prefix, height, width,
                      tokens.shape());
  const std::int64_t channels = channels_of("act_on_tokens", group, tokens);
  Indices rows;
  for (std::int64_t i = 0; i < prefix; ++i) rows.push_back(i);
  for (const std::int64_t pixel : pixel_sources(group, g, height, width)) rows.push_back(prefix + pixel);
  return move(tokens, rows, channels, index_sources(group, g));
}

Tensor act_on_index(const Group& group, int g, const Tensor& x) {
  check_element(group, g);
  require<ShapeError>(x.rank() >= 1, "act_on_index takes [..., C*T], not a scalar");
  return move(x, {0}, channels_of("act_on_index", group, x), index_sources(group, g));
}

}  // namespace gyre
