#include "layers/window.h"

#include <limits>

#include "core/error.h"
#include "core/group_action.h"

namespace gyre {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Tensor as_tensor(const std::vector<std::int64_t>& index) {
  return Tensor::from(index, {static_cast<std::int64_t>(index.size())});
}

}  // namespace

void require_windows(const WindowConfig& config) {
  require<ShapeError>(config.window >= 1 && config.grid >= 1 && config.grid % config.window == 0,
                      "windows of {} tokens do not tile a grid of {}x{}", config.window, config.grid,
                      config.grid);
  require<ShapeError>(config.shift >= 0 && config.shift < config.window,
                      "a shift of {} tokens is not below the window of {}", config.shift, config.window);
}

Tensor window_order(const WindowConfig& config) {
  require_windows(config);
  const std::int64_t grid = config.grid, window = config.window;
  std::vector<std::int64_t> order;
  order.reserve(at(grid * grid));
  for (std::int64_t top = config.shift; top < grid + config.shift; top += window)
    for (std::int64_t left = config.shift; left < grid + config.shift; left += window)
      for (std::int64_t row = 0; row < window; ++row)
        for (std::int64_t col = 0; col < window; ++col)
          order.push_back((top + row) % grid * grid + (left + col) % grid);
  return as_tensor(order);
}

Tensor inverse_order(const Tensor& order) {
  const auto* entries = order.data<std::int64_t>();
  std::vector<std::int64_t> inverse(at(order.numel()));
  for (std::int64_t i = 0; i < order.numel(); ++i) inverse[at(entries[i])] = i;
  return as_tensor(inverse);
}

Tensor window_mask(const WindowConfig& config, DType dtype) {
  require_windows(config);
  if (config.shift == 0) return {};
  const std::int64_t grid = config.grid, window = config.window, area = config.area();
  const std::int64_t side = grid / window;
  // Whether a place of the last window lies beyond the edge, along one side.
  const auto beyond = [&](std::int64_t place) { return place >= window - config.shift; };
  std::vector<double> mask(at(config.windows() * area * area), 0.0);
  for (std::int64_t w = 0; w < config.windows(); ++w) {
    const bool last_row = w / side == side - 1, last_col = w % side == side - 1;
    for (std::int64_t i = 0; i < area; ++i) {
      for (std::int64_t j = 0; j < area; ++j) {
        const bool apart = (last_row && beyond(i / window) != beyond(j / window)) ||
                           (last_col && beyond(i % window) != beyond(j % window));
        if (apart) mask[at((w * area + i) * area + j)] = -std::numeric_limits<double>::infinity();
      }
    }
  }
  return Tensor::from(mask, {config.windows(), area, area}).to(dtype);
}

Tensor relative_index(std::int64_t window) {
  const std::int64_t area = window * window, side = 2 * window - 1;
  std::vector<std::int64_t> index;
  index.reserve(at(area * area));
  for (std::int64_t query = 0; query < area; ++query)
    for (std::int64_t key = 0; key < area; ++key)
      index.push_back((query / window - key / window + window - 1) * side + query % window - key % window +
                      window - 1);
  return as_tensor(index);
}

Tensor turned_offsets(const Group& group, std::int64_t window) {
  // Offsets are the places of a square around its centre, where groups act as on pixels.
  const int side = static_cast<int>(2 * window - 1);
  std::vector<std::int64_t> index;
  index.reserve(at(group.order() * std::int64_t{side} * side));
  for (int g = 0; g < group.order(); ++g) {
    for (int row = 0; row < side; ++row) {
      for (int col = 0; col < side; ++col) {
        const Pixel p = act_on_pixel(group, g, {row, col}, side, side);
        index.push_back(std::int64_t{p.row} * side + p.col);
      }
    }
  }
  return as_tensor(index);
}

}  // namespace gyre
