#include "kernels/eq_choice.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cpu/flash_costs.h"
#include "kernels/cpu/flash_kernels.h"

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

// The rules below are fitted to medians over a grid of shapes on one and two threads of a Zen 5, with AVX-512
// and with AVX2.

/// Where every weight is read for few rows, the library's products win by their blocking.
bool packed_wins(const EqShape& shape) {
  if (shape.group.order() == 2) return false;  // two products save too little
  const std::int64_t n = shape.rows, c = shape.channels_in, d = shape.channels_out;
  if (shape.direction == EqDirection::forward) return n <= 256 && c * d >= 524288;
  if (n >= 24 && n < 48 && c >= 128 && c * d >= 20480) return true;
  return n >= 16 && n < 256 && c * d >= 131072;
}

/// Flash wins where the products that it saves pay for its transforms and for the channels that only fill its
/// vectors. In dense multiply-adds, where ⌈C⌉ and ⌈D⌉ fill whole vectors,
///   saved = rows · (T² C D - T (in ⌈C⌉ + out ⌈D⌉) - row) - max(rows, least) · share · P C ⌈D⌉
/// must exceed a bound, which is negative: a call with hardly any products costs less than a dense one.
struct Costs {
  double share, in, out, row, least, bound;
};

Costs costs_of(int order, int lanes) {
  // Short vectors do fewer products in the time of a call, and transforms cost less beside them.
  if (lanes < 16) return {0.75, 3, 5, 100, 3, -25000};
  if (order <= 2) return {0.75, 6.5, 6, 150, 1.5, -75000};
  if (order == 4) return {0.82, 4, 9.2, 0, 3, -67000};
  return {1.2, 12, 18, 280, 2.5, -47000};
}

/// What one product of all rows saves, from `in` channels to `out`, beyond the bound.
double saved_by_product(const EqShape& shape, std::int64_t in, std::int64_t out) {
  static const std::int64_t lanes = std::max(8, cpu::flash_lanes());
  const int order = shape.group.order();
  const Costs costs = costs_of(order, static_cast<int>(lanes));
  const auto whole = [](std::int64_t channels) {
    return static_cast<double>((channels + lanes - 1) & -lanes);  // small layers would feel a division
  };
  // Rows of more channels than are summed in one go are read from memory, plane by plane.
  constexpr std::int64_t cached = 65536, in_one_go = 256;
  const double far = in > in_one_go && shape.rows * in * order > cached ? 18 : 0;
  const double dense = order * order * static_cast<double>(in) * static_cast<double>(out),
               flash = shape.group.fewest_form().products() * static_cast<double>(in) * whole(out),
               transforms = order * ((costs.in + far) * whole(in) + costs.out * whole(out));
  const auto rows = static_cast<double>(shape.rows);
  return rows * (dense - transforms - costs.row) - std::max(rows, costs.least) * costs.share * flash -
         costs.bound;
}

/// What flash saves of naive's time for dW.
double saved_by_sums(const EqShape& shape) {
  const cpu::FlashShape flash{shape.group.order(), shape.group.fewest_form().products(),
                              shape.rows,          shape.channels_in,
                              shape.channels_out,  shape.threads};
  return cpu::naive_sums_cost(flash) - std::min(cpu::dense_sums_cost(flash), cpu::flash_sums_cost(flash));
}

bool flash_wins(const EqShape& shape) {
  if (shape.direction == EqDirection::forward)
    return saved_by_product(shape, shape.channels_in, shape.channels_out) > 0;
  return saved_by_product(shape, shape.channels_out, shape.channels_in) + saved_by_sums(shape) > 0;
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
  if (!flash_only && (shape.group.order() == 1 || !flash_wins(shape))) return EqImplementation::naive;
  return packed_wins(shape) ? EqImplementation::packed : EqImplementation::fused;
}

}  // namespace gyre::kernels
