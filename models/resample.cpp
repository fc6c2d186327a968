#include "models/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace gyre {

namespace {

/// Keys' kernel with a = -1/2: interpolates, and reproduces quadratics.
double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

/// Rows of weights [to, from]: value at each new cell from the old ones.
std::vector<std::vector<double>> weights(std::int64_t from, std::int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to), reach = std::max(1.0, step);
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < to; ++i) {
    std::vector<double>& row = rows.emplace_back(static_cast<std::size_t>(from));
    const double centre = (static_cast<double>(i) + 0.5) * step - 0.5;
    double sum = 0;
    for (auto j = static_cast<std::int64_t>(std::ceil(centre - 2 * reach));
         static_cast<double>(j) < centre + 2 * reach; ++j) {
      const double weight = cubic((static_cast<double>(j) - centre) / reach);
      row[static_cast<std::size_t>(std::clamp<std::int64_t>(j, 0, from - 1))] += weight;
      sum += weight;
    }
    for (double& weight : row) weight /= sum;
  }
  return rows;
}

}  // namespace

Tensor resample_square(const Tensor& table, std::int64_t new_side) {
  require<ShapeError>(
      table.rank() == 3 && table.size(0) == table.size(1) && table.numel() > 0 && new_side >= 1,
      "resample_square takes [side, side, channels], not {} to a side of {}", table.shape(), new_side);
  const std::int64_t side = table.size(0), channels = table.size(2);
  const auto rows = weights(side, new_side);
  const std::vector<double> values = table.to_vector();
  const auto place = [channels](std::int64_t row, std::int64_t col, std::int64_t width) {
    return static_cast<std::size_t>((row * width + col) * channels);
  };
  // Columns first, then rows.
  std::vector<double> wide(static_cast<std::size_t>(side * new_side * channels));
  std::vector<double> result(static_cast<std::size_t>(new_side * new_side * channels));
  const auto add = [channels](double weight, const double* from, double* to) {
    for (std::int64_t c = 0; c < channels; ++c) to[c] += weight * from[c];
  };
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < new_side; ++j)
      for (std::int64_t k = 0; k < side; ++k)
        add(rows[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)], &values[place(i, k, side)],
            &wide[place(i, j, new_side)]);
  for (std::int64_t i = 0; i < new_side; ++i)
    for (std::int64_t k = 0; k < side; ++k)
      for (std::int64_t j = 0; j < new_side; ++j)
        add(rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)], &wide[place(k, j, new_side)],
            &result[place(i, j, new_side)]);
  return Tensor::from(result, {new_side, new_side, channels}).to(table.dtype());
}

}  // namespace gyre
