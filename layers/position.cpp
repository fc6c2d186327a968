#include "layers/position.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/shape.h"
#include "layers/initialise.h"
#include "layers/orbit.h"

namespace gyre {

PositionTable::PositionTable(std::int64_t tokens, std::int64_t width, RandomStream& stream)
    : table_(&add_parameter("", Initialiser::truncated_normal()({1, tokens, width}, stream), false)) {}

Variable PositionTable::forward(const Variable& x) { return x + table_->variable; }

std::string PositionTable::describe() const {
  return fmt::format("{} tokens of {}", table_->variable.size(1), table_->variable.size(2));
}

PositionKind parse_position_kind(std::string_view name) {
  if (name == "full") return PositionKind::full;
  require<ValueError>(name == "quarter", "position table \"{}\" is neither full nor quarter", name);
  return PositionKind::quarter;
}

EqPositionTable::EqPositionTable(PositionKind kind, const Group& group, std::int64_t grid,
                                 std::int64_t channels, bool class_token, RandomStream& stream)
    : kind_(kind), grid_(grid) {
  const int side = static_cast<int>(grid);
  const int prefix = class_token ? 1 : 0;
  const bool full = kind == PositionKind::full;
  index_ = full ? full_position_index(group, side, channels, prefix)
                : quarter_position_index(group, side, channels, prefix);
  add_constant(index_);
  const auto cells = full ? grid * grid : static_cast<std::int64_t>(quarter_cells(group, side).size());
  const Shape shape = full ? Shape{grid, grid, channels} : Shape{cells, channels};
  const Initialiser initialiser = Initialiser::truncated_normal();
  table_ = &add_parameter("", initialiser(shape, stream), false);
  if (class_token) cls_ = &add_parameter("cls", initialiser({channels}, stream), false);
}

Variable EqPositionTable::forward(const Variable& x) {
  Variable rows = reshape(table_->variable, {1, -1});
  if (cls_) rows = concat({reshape(cls_->variable, {1, -1}), rows}, 1);
  const Variable table = gather(rows, index_);
  return x + reshape(table, {1, x.size(1), x.size(2)});
}

std::string EqPositionTable::describe() const {
  return fmt::format("{}, {}x{} grid", kind_ == PositionKind::full ? "full" : "quarter", grid_, grid_);
}

}  // namespace gyre
