#include "models/counting.h"

#include <algorithm>

#include "kernels/eq_linear.h"
#include "layers/orbit.h"

namespace gyre {

namespace {

std::int64_t nonzeros(const Matrix& matrix) {
  return std::count_if(matrix.values.begin(), matrix.values.end(), [](double v) { return v != 0; });
}

/// FLOPs per row and channel of a flash product: y = output·((input·x) ∘ w).
struct ProductCost {
  std::int64_t products = 0;  ///< multiply-adds per (row, C, D)
  std::int64_t input = 0;     ///< per (row, C)
  std::int64_t output = 0;    ///< per (row, D), without bias
};

/// The paper's rule, from the group's Fourier transform: additions of F; T scalings, the additions of F⁻¹ and
/// one addition for every second product of a slot.
ProductCost paper_cost(const Group& group) {
  const std::int64_t t = group.order();
  const std::int64_t additions = nonzeros(group.fourier()) - t;
  ProductCost cost{group.plain_form().products(), additions, t + additions};
  for (const FourierBlock& block : group.blocks()) {
    if (block.kind == FourierBlock::Kind::complex) cost.output += 2;
    if (block.kind == FourierBlock::Kind::matrix) cost.output += 4;
  }
  return cost;
}

/// What runs: scales are folded into the planes, each row of a form costs one addition per further entry.
ProductCost executed_cost(const Group& group, std::int64_t products) {
  const bool plain = products == group.plain_form().products() && products != group.fewest_form().products();
  const BilinearForm& form = plain ? group.plain_form() : group.fewest_form();
  return {form.products(), nonzeros(form.input) - form.input.rows, nonzeros(form.output) - form.output.rows};
}

/// Linear layers over widths (all channels), with bias.
std::int64_t dense_flops(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return rows * out * (2 * in + 1);
}
std::int64_t flash_flops(const ProductCost& cost, std::int64_t order, std::int64_t rows, std::int64_t in,
                         std::int64_t out) {
  const std::int64_t c = in / order, d = out / order;
  return rows * (2 * cost.products * c * d + cost.input * c + (cost.output + order) * d);
}

struct Counter {
  const ModelConfig& config;
  const Group& group = group_of(config);
  bool equivariant = is_equivariant(config);
  kernels::EqLinearOptions options = {kernels::parse_eq_backend(config.backend),
                                      static_cast<int>(config.products)};

  std::int64_t order() const { return group.order(); }
  std::int64_t channels() const { return config.width / order(); }
  std::int64_t patches() const { return grid_of(config) * grid_of(config); }
  std::int64_t patch_values() const { return config.in_channels * config.patch_size * config.patch_size; }
  /// Input width of the patch embedding as an EQ-Linear.
  std::int64_t orbit_width() const {
    return config.in_channels * orbit_table(group, static_cast<int>(config.patch_size)).orbits() * order();
  }

  std::int64_t paper_linear(std::int64_t rows, std::int64_t in, std::int64_t out) const {
    const bool dense = order() == 1 || options.backend == kernels::EqBackend::naive;
    return dense ? dense_flops(rows, in, out) : flash_flops(paper_cost(group), order(), rows, in, out);
  }
  std::int64_t executed_linear(std::int64_t rows, std::int64_t in, std::int64_t out) const {
    const std::string kernel =
        kernels::eq_linear_kernel(group, options, DType::f32, rows, in / order(), out / order());
    if (!equivariant || !kernel.starts_with("flash")) return dense_flops(rows, in, out);
    return flash_flops(executed_cost(group, config.products), order(), rows, in, out);
  }

  template <class Linear>
  std::int64_t blocks(Linear&& linear) const {
    const std::int64_t n = tokens_of(config), w = config.width, hidden = hidden_of(config);
    return config.depth *
           (linear(n, w, 3 * w) + linear(n, w, w) + linear(n, w, hidden) + linear(n, hidden, w));
  }
  /// QKᵀ and AV.
  std::int64_t attention() const {
    return config.depth * 4 * tokens_of(config) * tokens_of(config) * config.width;
  }
  std::int64_t head() const { return dense_flops(1, channels(), config.classes); }
  std::int64_t parameters() const;
  std::int64_t position_parameters() const;
};

std::int64_t Counter::position_parameters() const {
  if (!equivariant) return tokens_of(config) * config.width;
  const auto cells =
      config.pos_embed == "full"
          ? patches()
          : static_cast<std::int64_t>(quarter_cells(group, static_cast<int>(grid_of(config))).size());
  return (cells + (config.pool == "token" ? 1 : 0)) * channels();
}

std::int64_t Counter::parameters() const {
  const std::int64_t c = channels();
  const auto linear = [this](std::int64_t in, std::int64_t out) { return (in * out + out) / order(); };
  const std::int64_t w = config.width, hidden = hidden_of(config);
  const std::int64_t block = 4 * c + linear(w, 3 * w) + linear(w, w) + linear(w, hidden) + linear(hidden, w);
  const std::int64_t token = config.pool == "token" ? c : 0;
  return (patch_values() + 1) * c + token + position_parameters() + config.depth * block + 2 * c +
         (c + 1) * config.classes;
}

}  // namespace

ModelCounts count_model(const ModelConfig& config) {
  const ModelConfig resolved = resolve(config);
  validate(resolved);
  const Counter counter{resolved};
  const std::int64_t others = counter.attention() + counter.head();
  ModelCounts counts;
  counts.parameters = counter.parameters();
  counts.linear_flops = counter.blocks([&](auto... sizes) { return counter.paper_linear(sizes...); });
  counts.total_flops =
      counts.linear_flops + others + 2 * counter.patches() * counter.patch_values() * resolved.width;
  counts.executed_flops = counter.blocks([&](auto... sizes) {
    return counter.executed_linear(sizes...);
  }) + others + counter.executed_linear(counter.patches(), counter.orbit_width(), resolved.width);
  counts.exact = is_equivariant(resolved);
  return counts;
}

}  // namespace gyre
