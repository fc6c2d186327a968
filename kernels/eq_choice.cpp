#include "kernels/eq_choice.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/scratch.h"

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

// The rules below are fitted to medians over a grid of shapes on two threads of a Zen 5 with AVX-512.

std::int64_t lanes() {
  static const int lanes = std::max(8, cpu::flash_lanes());
  return lanes;
}
std::int64_t vectors_of(std::int64_t channels) { return cpu::round_up(channels, lanes()); }
/// A tile holds two vectors of output channels.
std::int64_t panels_of(std::int64_t channels) {
  return channels <= 2 * lanes() ? 2 * lanes() : vectors_of(channels);
}

/// Where every weight is read for few rows, the library's products win by their blocking.
bool packed_wins(const EqShape& shape) {
  if (shape.group.order() == 2) return false;  // two products save too little
  const std::int64_t n = shape.rows, c = shape.channels_in, d = shape.channels_out;
  if (shape.direction == EqDirection::forward) return n <= 256 && c * d >= 524288;
  if (n >= 24 && n < 48 && c >= 128 && c * d >= 20480) return true;
  return n >= 16 && n < 256 && c * d >= 131072;
}

// Flash wins where the products that it saves pay for its transforms and for the channels that only fill its
// vectors. In multiply-adds:
//   saved = rows · (dense products - share · flash products - cost · channels transformed) > bound
// and since a call with hardly any products costs less than a dense one, the bound is negative; short vectors
// do fewer products in that time, and fill themselves with fewer useless channels.
struct Costs {
  double share, cost, bound;

  double least_saved() const { return lanes() < 16 ? bound / 4 : bound; }
};

bool flash_wins_forward(const EqShape& shape) {
  const int order = shape.group.order(), products = shape.group.fewest_form().products();
  const Costs costs = order == 8 ? Costs{0.8, 240, -30000} : Costs{0.5, 28.0 * order, -60000};
  const auto n = static_cast<double>(shape.rows), c = static_cast<double>(shape.channels_in),
             d = static_cast<double>(panels_of(shape.channels_out));
  const double dense = order * order * c * static_cast<double>(shape.channels_out), flash = products * c * d,
               transformed = d + (order == 8 ? c / 6 : 0);
  return n * (dense - costs.share * flash - costs.cost * transformed) > costs.least_saved();
}

bool flash_wins_backward(const EqShape& shape) {
  const int order = shape.group.order(), products = shape.group.fewest_form().products();
  const Costs costs = order == 8 ? Costs{1.1, 240, -12000} : Costs{0.7, 33.0 * order, -40000};
  const auto n = static_cast<double>(shape.rows), c = static_cast<double>(vectors_of(shape.channels_in)),
             d = static_cast<double>(shape.channels_out);
  const auto d_vectors = static_cast<double>(vectors_of(shape.channels_out));
  const double dense = 2.0 * order * order * static_cast<double>(shape.channels_in) * d,
               flash = products * (static_cast<double>(panels_of(shape.channels_in)) * d + c * d_vectors),
               transformed = c + (order == 8 ? d_vectors : 0);
  return n * (dense - costs.share * flash - costs.cost * transformed) > costs.least_saved();
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
