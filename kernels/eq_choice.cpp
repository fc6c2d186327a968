#include "kernels/eq_choice.h"

#include <algorithm>
#include <array>
#include <bit>

namespace gyre::kernels {
namespace {

constexpr std::array<std::string_view, 3> implementation_names{"fused", "packed", "naive"};

std::shared_ptr<const EqTable>& table_in_use() {
  static std::shared_ptr<const EqTable> table;
  return table;
}

/// 0 for 1, 1 for 2 to 7, 2 for 8 to 31 …: the nearest power of four.
std::uint64_t cell_of(std::int64_t count) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, count))) / 2;
}

std::uint64_t key_of(const EqShape& shape) {
  const auto names = Group::names();
  const auto group =
      static_cast<std::uint64_t>(std::find(names.begin(), names.end(), shape.group.name()) - names.begin());
  std::uint64_t key = group * 2 + static_cast<std::uint64_t>(shape.direction);
  for (const std::int64_t count : {shape.rows, shape.channels_in, shape.channels_out})
    key = key * 64 + cell_of(count);
  return key;
}

/// Whether flash beats the dense product. A panel of output channels is computed whole and transforms cost as
/// much as a few channels of the products, so that flash needs both kinds of channels, unless there are so
/// few rows that a call costs more than they do.
bool flash_wins(const EqShape& shape) {
  const std::int64_t n = shape.rows, c = shape.channels_in, d = shape.channels_out;
  const int order = shape.group.order();
  if (order == 1) return false;
  const std::int64_t least = order == 2 ? 32 : 16;
  if (shape.direction == EqDirection::forward) {
    if (n <= 4) return true;
    if (n <= 16) return d >= least;
    return d >= least && c >= least;
  }
  if (n < 16) return n * c * d <= 64 || c * d >= 16384;
  return d >= least && c >= least;
}

}  // namespace

std::string_view name_of(EqImplementation implementation) {
  return implementation_names[static_cast<std::size_t>(implementation)];
}

std::string_view name_of(EqDirection direction) {
  return direction == EqDirection::forward ? "forward" : "backward";
}

void EqTable::set(const EqShape& shape, Choice choice) { cells_[key_of(shape)] = choice; }

const EqTable::Choice* EqTable::find(const EqShape& shape) const {
  if (shape.threads != threads_) return nullptr;
  const auto found = cells_.find(key_of(shape));
  return found == cells_.end() ? nullptr : &found->second;
}

void use_eq_table(std::shared_ptr<const EqTable> table) { table_in_use() = std::move(table); }

std::string eq_table_id() { return table_in_use() ? table_in_use()->id() : ""; }

EqImplementation eq_choice(const EqShape& shape, bool flash_only) {
  if (const auto& table = table_in_use()) {
    if (const EqTable::Choice* choice = table->find(shape)) return flash_only ? choice->flash : choice->any;
  }
  return fixed_eq_choice(shape, flash_only);
}

EqImplementation fixed_eq_choice(const EqShape& shape, bool flash_only) {
  if (!flash_only && !flash_wins(shape)) return EqImplementation::naive;
  // Few rows read every weight once: the library's products do it on all threads.
  const bool backward = shape.direction == EqDirection::backward;
  return shape.rows <= (backward ? 64 : 32) && shape.channels_in * shape.channels_out >= 65536
             ? EqImplementation::packed
             : EqImplementation::fused;
}

}  // namespace gyre::kernels
