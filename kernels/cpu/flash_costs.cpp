#include "kernels/cpu/flash_costs.h"

#include <algorithm>

#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/eq_weight_gradient.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/scratch.h"

namespace gyre::kernels::cpu {
namespace {

constexpr double wake = 16384;  // of a second thread

/// Of all planes, padded to whole vectors.
double plane_sums(const FlashShape& shape) {
  const int lanes = flash_lanes();
  return shape.products * static_cast<double>(round_up(shape.channels_in, lanes)) *
         static_cast<double>(round_up(shape.channels_out, lanes));
}

/// Products and the planes of x for flash_sums_cost, all rows.
double plane_products(const FlashShape& shape) {
  constexpr double share = 0.55, split = 12;
  const auto c = static_cast<double>(round_up(shape.channels_in, flash_lanes()));
  return static_cast<double>(shape.rows) * (share * plane_sums(shape) + split * shape.order * c);
}

double dense_products(const FlashShape& shape) {
  return static_cast<double>(shape.rows) * shape.order * shape.order *
         static_cast<double>(shape.channels_in * shape.channels_out);
}

}  // namespace

FlashGrid::FlashGrid(const FlashShape& shape) {
  // Large sums are divided instead of repeated: the third-level cache is shared. So are those of few rows.
  constexpr std::int64_t cached = 2097152, large = 8192, least_columns = 32, least_rows = 32;
  constexpr double task = 65536;
  const std::int64_t sums = flash_sums_size(shape.products, shape.channels_in, shape.channels_out);
  const auto divide = [&] {
    const std::int64_t part = sums / column_parts;
    return part > cached || (part > large && shape.rows < shape.threads / column_parts * least_rows);
  };
  while (divide() && shape.threads % (2 * column_parts) == 0 &&
         shape.channels_out >= 2 * column_parts * least_columns)
    column_parts *= 2;
  columns = whole_panels((shape.channels_out + column_parts - 1) / column_parts);
  column_parts = static_cast<int>((shape.channels_out + columns - 1) / columns);
  const auto fitting = static_cast<std::int64_t>(plane_products(shape) / task);
  row_parts = static_cast<int>(
      std::clamp<std::int64_t>(std::min(shape.rows / least_rows, fitting), 1, shape.threads / column_parts));
}

double naive_sums_cost(const FlashShape& shape) {
  constexpr double call = 300000;  // of the library, and of folding what it writes
  const bool here =
      naive_folds_in_registers(shape.order, shape.rows, shape.channels_in, shape.channels_out, shape.threads);
  const double cost = here ? dense_sums_cost(shape)
                           : dense_products(shape) / shape.threads + (shape.threads > 1 ? wake : 0) + call;
  // Beyond the caches the library's blocks win.
  return rows_in_caches(shape.order, shape.rows, shape.channels_in, shape.channels_out) ? cost : cost / 2;
}

double dense_sums_cost(const FlashShape& shape) {
  const int parts =
      eq_weight_gradient_parts(shape.order, shape.rows, shape.channels_in, shape.channels_out, shape.threads);
  return dense_products(shape) / parts + (parts > 1 ? wake : 0);
}

double flash_sums_cost(const FlashShape& shape) {
  constexpr double keep = 24, call = 4000;
  const FlashGrid grid(shape);
  const double share = static_cast<double>(std::min(grid.columns, shape.channels_out)) /
                       static_cast<double>(shape.channels_out * grid.row_parts);
  return plane_products(shape) * share + (grid.parts() > 1 ? wake : 0) + keep * plane_sums(shape) - call;
}

}  // namespace gyre::kernels::cpu
