#include "layers/orbit.h"

#include "core/error.h"

namespace gyre {

namespace {

void require_image_action(const Group& group) {
  require<ValueError>(group.has_image_action(), "{} has no exact image action", group.name());
}

Tensor as_tensor(const std::vector<std::int64_t>& index) {
  return Tensor::from(index, {static_cast<std::int64_t>(index.size())});
}

/// Spreads a table of rows [positions, T] to values [prefix + positions, channels, T]; prefix rows come first
/// in both.
Tensor spread_rows(const std::vector<std::int64_t>& rows, int order, std::int64_t channels, int prefix) {
  std::vector<std::int64_t> index;
  const std::int64_t positions = prefix + static_cast<std::int64_t>(rows.size()) / order;
  index.reserve(static_cast<std::size_t>(positions * channels * order));
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (int t = 0; t < order; ++t) {
        const std::int64_t row =
            p < prefix ? p : prefix + rows[static_cast<std::size_t>((p - prefix) * order + t)];
        index.push_back(row * channels + c);
      }
    }
  }
  return as_tensor(index);
}

}  // namespace

OrbitTable orbit_table(const Group& group, int size) {
  require_image_action(group);
  OrbitTable table;
  table.order = group.order();
  std::vector<bool> seen(static_cast<std::size_t>(size * size));
  for (int row = 0; row < size; ++row) {
    for (int col = 0; col < size; ++col) {
      if (seen[static_cast<std::size_t>(row * size + col)]) continue;
      const Pixel first{row, col};
      int stabiliser = 0;
      for (int s = 0; s < group.order(); ++s) {
        const Pixel p = act_on_pixel(group, s, first, size, size);
        table.pixels.push_back(p);
        seen[static_cast<std::size_t>(p.row * size + p.col)] = true;
        if (p == first) ++stabiliser;
      }
      table.stabilisers.push_back(stabiliser);
    }
  }
  return table;
}

Tensor patch_index(const Group& group, std::int64_t colours, std::int64_t image_size, std::int64_t patch) {
  require<ShapeError>(patch > 0 && image_size % patch == 0,
                      "{}x{} image with patch {} leaves a remainder of {}", image_size, image_size, patch,
                      patch > 0 ? image_size % patch : image_size);
  const OrbitTable table = orbit_table(group, static_cast<int>(patch));
  const std::int64_t grid = image_size / patch;
  std::vector<std::int64_t> index;
  for (std::int64_t y = 0; y < grid; ++y) {
    for (std::int64_t x = 0; x < grid; ++x) {
      for (std::int64_t c = 0; c < colours; ++c) {
        for (const Pixel& p : table.pixels)
          index.push_back((c * image_size + y * patch + p.row) * image_size + x * patch + p.col);
      }
    }
  }
  return as_tensor(index);
}

Tensor filter_index(const Group& group, std::int64_t colours, std::int64_t patch) {
  return patch_index(group, colours, patch, patch);
}

Tensor filter_scale(const Group& group, std::int64_t colours, std::int64_t patch) {
  const OrbitTable table = orbit_table(group, static_cast<int>(patch));
  std::vector<double> scale;
  bool all_full = true;
  for (std::int64_t c = 0; c < colours; ++c) {
    for (const int stabiliser : table.stabilisers) {
      all_full = all_full && stabiliser == 1;
      scale.insert(scale.end(), static_cast<std::size_t>(table.order), 1.0 / stabiliser);
    }
  }
  if (all_full) return {};
  return Tensor::from(scale, {static_cast<std::int64_t>(scale.size())});
}

Tensor full_position_index(const Group& group, int grid, std::int64_t channels, int prefix) {
  require_image_action(group);
  std::vector<std::int64_t> rows;
  for (int row = 0; row < grid; ++row) {
    for (int col = 0; col < grid; ++col) {
      for (int t = 0; t < group.order(); ++t) {
        const Pixel from = act_on_pixel(group, group.inv(t), {row, col}, grid, grid);
        rows.push_back(std::int64_t{from.row} * grid + from.col);
      }
    }
  }
  return spread_rows(rows, group.order(), channels, prefix);
}

Tensor quarter_position_index(const Group& group, int grid, std::int64_t channels, int prefix) {
  const std::vector<Pixel> cells = quarter_cells(group, grid);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(grid * grid * group.order()), -1);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (int s = 0; s < group.order(); ++s) {
      const Pixel p = act_on_pixel(group, s, cells[i], grid, grid);
      for (int t = 0; t < group.order(); ++t)
        rows[static_cast<std::size_t>((p.row * grid + p.col) * group.order() + t)] =
            static_cast<std::int64_t>(i);
    }
  }
  return spread_rows(rows, group.order(), channels, prefix);
}

std::vector<Pixel> quarter_cells(const Group& group, int grid) {
  require_image_action(group);
  require<ValueError>(group.order() == 1 || grid % 2 == 0,
                      "the quarter position table needs an even grid, not {}x{}", grid, grid);
  const int half = grid / 2;
  const auto stored = [&](const Pixel& p) {
    if (group.name() == "c1") return true;
    if (group.name() == "c2") return p.row < half;
    if (group.name() == "mirror") return p.col < half;
    if (group.name() == "c4") return p.row < half && p.col < half;
    return p.row <= p.col && p.col < half;
  };
  std::vector<Pixel> cells;
  for (int row = 0; row < grid; ++row) {
    for (int col = 0; col < grid; ++col)
      if (stored({row, col})) cells.push_back({row, col});
  }
  return cells;
}

}  // namespace gyre
