#include "models/transfer.h"

#include <set>
#include <utility>

#include "core/group_action.h"
#include "layers/orbit.h"
#include "models/resample.h"

namespace gyre {

namespace {

bool is_relative(std::string_view name) { return name.ends_with("relative_position_bias_table"); }

/// The square [grid, grid, C] that a quarter table [cells, C] stands for.
Tensor spread(const Group& group, const Tensor& table, std::int64_t grid) {
  const int side = static_cast<int>(grid);
  const std::vector<Pixel> cells = quarter_cells(group, side);
  Tensor square = Tensor::empty({grid, grid, table.size(1)}, table.dtype());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (int s = 0; s < group.order(); ++s) {
      const Pixel p = act_on_pixel(group, s, cells[i], side, side);
      square.select(0, p.row).select(0, p.col).copy_(table.select(0, static_cast<std::int64_t>(i)));
    }
  }
  return square;
}

/// The stored cells of a symmetric square.
Tensor restrict_to_cells(const Group& group, const Tensor& square) {
  const std::vector<Pixel> cells = quarter_cells(group, static_cast<int>(square.size(0)));
  Tensor table = Tensor::empty({static_cast<std::int64_t>(cells.size()), square.size(2)}, square.dtype());
  for (std::size_t i = 0; i < cells.size(); ++i)
    table.select(0, static_cast<std::int64_t>(i))
        .copy_(square.select(0, cells[i].row).select(0, cells[i].col));
  return table;
}

/// pos_embed of vit or eq_vit for another grid.
Tensor resample_positions(const Tensor& table, const ModelConfig& from, const ModelConfig& to) {
  const std::int64_t grid = grid_of(from), new_grid = grid_of(to);
  if (is_equivariant(from)) {
    if (from.pos_embed == "full") return resample_square(table, new_grid);
    const Group& group = group_of(from);
    return restrict_to_cells(group, resample_square(spread(group, table, grid), new_grid));
  }
  const std::int64_t prefix = from.pool == "token" ? 1 : 0, width = table.size(2);
  Tensor result = Tensor::empty({1, prefix + new_grid * new_grid, width}, table.dtype());
  result.slice(1, 0, prefix).copy_(table.slice(1, 0, prefix));
  const Tensor square = table.slice(1, prefix, table.size(1)).reshape({grid, grid, width});
  result.slice(1, prefix, result.size(1))
      .copy_(resample_square(square, new_grid).reshape({1, new_grid * new_grid, width}));
  return result;
}

/// [(2·window - 1)², heads] for another window.
Tensor resample_offsets(const Tensor& table, const Shape& to, const std::string& name) {
  const auto side_of = [&](std::int64_t rows) {
    std::int64_t side = 1;
    while (side * side < rows) side += 2;
    require<ShapeError>(side * side == rows, "{}: {} rows are not the offsets of a square window", name,
                        rows);
    return side;
  };
  const std::int64_t side = side_of(table.size(0)), new_side = side_of(to[0]), heads = table.size(1);
  return resample_square(table.reshape({side, side, heads}), new_side).reshape({new_side * new_side, heads});
}

/// What the model with settings `from` has under this name. Sizes that do not depend on the image are those
/// of `own`.
Shape shape_in(const ModelConfig& from, const std::string& name, const Shape& own) {
  if (name != "pos_embed") return own;
  if (!is_equivariant(from)) return {1, tokens_of(from), own[2]};
  const std::int64_t grid = grid_of(from);
  if (from.pos_embed == "full") return {grid, grid, own[2]};
  return {static_cast<std::int64_t>(quarter_cells(group_of(from), static_cast<int>(grid)).size()), own[1]};
}

}  // namespace

Transfer transfer_weights(Model& model, const ModelConfig& from, const TensorMap& weights, bool new_head) {
  const ModelConfig& to = model.config();
  Transfer transfer;
  TensorMap state;
  std::set<std::string> known;
  for (const auto& [name, parameter] : model.parameters()) {
    known.insert(name);
    const Tensor& own = parameter->variable.data();
    const auto found = weights.find(name);
    if (new_head && name.starts_with("head.")) {
      state[name] = own;
      transfer.initialised.push_back(
          {name, found == weights.end() ? Shape{} : found->second.shape(), own.shape()});
      continue;
    }
    require(found != weights.end(), "weights lack the tensor {}", name);
    const Tensor& source = found->second;
    const bool relative = is_relative(name);
    const Shape expected = shape_in(from, name, own.shape());
    const bool fits =
        relative ? source.rank() == 2 && source.size(1) == own.size(1) : source.shape() == expected;
    require(fits, "weights have {} with shape {}, the model needs {}", name, source.shape(), expected);
    if (name == "pos_embed" && grid_of(from) != grid_of(to)) {
      state[name] = resample_positions(source, from, to);
      transfer.resampled.push_back({name, source.shape(), own.shape()});
    } else if (relative && source.shape() != own.shape()) {
      state[name] = resample_offsets(source, own.shape(), name);
      transfer.resampled.push_back({name, source.shape(), own.shape()});
    } else {
      state[name] = source;
      transfer.kept.push_back({name, source.shape(), own.shape()});
    }
  }
  for (const auto& [name, tensor] : weights)
    require(known.contains(name), "weights have the tensor {}, which the model lacks", name);
  model.load_state(state);
  return transfer;
}

}  // namespace gyre
