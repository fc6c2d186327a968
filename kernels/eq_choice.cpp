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

/// Few rows read every weight once: the library's products then keep all threads busy.
bool packed_wins(const EqShape& shape) {
  const std::int64_t n = shape.rows, c = shape.channels_in, d = shape.channels_out;
  if (shape.direction == EqDirection::forward) return n <= 32 && c * d >= 65536;
  return n < 48 && c >= (n < 8 ? 128 : 48) && d >= 48 && c * d >= 16384;
}

// From medians of gyre tune on two threads of a Zen 5 with AVX-512, which one thread confirms: a panel of
// output channels is computed whole, and the transforms of a row cost as much as a few channels of its
// products. Flash therefore needs both kinds of channels, unless there are so few rows that the call costs
// more than they do. Ratios near 1 fall to the dense product.

bool flash_wins_forward(const EqShape& shape) {
  const std::int64_t n = shape.rows, c = shape.channels_in, d = shape.channels_out;
  const int order = shape.group.order();
  const std::int64_t least = order == 2 && n > 128 ? 24 : 12;
  if (c >= least && d >= least) return true;
  if (order == 8) return n <= 4 && c <= 32;
  if (n <= 16) return d >= 12 || c <= (n <= 4 ? 512 : 32);
  return c >= 6 && d >= (n <= 128 ? 12 : 192);
}

bool flash_wins_backward(const EqShape& shape) {
  const std::int64_t n = shape.rows, c = shape.channels_in, d = shape.channels_out;
  const int order = shape.group.order();
  const std::int64_t least = order == 2 && n > 128 ? 24 : 12;
  if (n >= 8 && c >= least && d >= least) return true;
  if (packed_wins(shape)) return true;
  // Calls of a few microseconds.
  if (order == 8) return n <= 4 && c * d <= 64;
  if (n <= 2) return d <= 24 ? c <= 64 : d <= 96 && c >= 6 && c <= 24;
  if (n < 8) return d <= 24 ? c <= 256 : d <= 128 && c <= 64;
  return n <= 32 && (d <= 24 ? c <= (d < 4 ? 32 : 256) : d <= 256 && c >= 6);
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
  const auto wins = shape.direction == EqDirection::forward ? flash_wins_forward : flash_wins_backward;
  if (!flash_only && (shape.group.order() == 1 || !wins(shape))) return EqImplementation::naive;
  return packed_wins(shape) ? EqImplementation::packed : EqImplementation::fused;
}

}  // namespace gyre::kernels
