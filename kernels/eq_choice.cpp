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

EqImplementation eq_choice(const EqShape& shape, bool flash_only) {
  if (const auto& table = table_in_use()) {
    if (const EqTable::Choice* choice = table->find(shape)) return flash_only ? choice->flash : choice->any;
  }
  return fixed_eq_choice(shape, flash_only);
}

EqImplementation fixed_eq_choice(const EqShape& shape, bool flash_only) {
  if (!flash_only && shape.group.order() == 1) return EqImplementation::naive;
  return EqImplementation::fused;
}

}  // namespace gyre::kernels
