#include "kernels/cpu/flash_costs.h"

#include <algorithm>

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
  const auto fitting = static_cast<std::int64_t>(plane_products(shape) / task);
  row_parts = static_cast<int>(
      std::clamp<std::int64_t>(std::min(shape.rows / least_rows, fitting), 1, shape.threads / column_parts));
}

double dense_sums_cost(const FlashShape& shape) {
  constexpr double task = 262144;
  const double products = static_cast<double>(shape.rows) * shape.order * shape.order *
                          static_cast<double>(shape.channels_in * shape.channels_out);
  return shape.threads > 1 && products > task ? products / shape.threads + wake : products;
}

double flash_sums_cost(const FlashShape& shape) {
  constexpr double keep = 24, call = 4000;
  const int parts = FlashGrid(shape).parts();
  return plane_products(shape) / parts + (parts > 1 ? wake : 0) + keep * plane_sums(shape) - call;
}

}  // namespace gyre::kernels::cpu
