#include "models/counting.h"

#include <algorithm>
#include <utility>
#include <vector>

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

/// Linear products of one kind in a model, over widths of all channels.
struct Product {
  enum class Kind { patch, block, merging, head } kind;
  std::int64_t count, rows, in, out;
};

/// Every linear product of the model. An equivariant head reads channels summed over t.
std::vector<Product> products_of(const ModelConfig& config) {
  const std::int64_t grid = grid_of(config), token = config.pool == "token" ? 1 : 0;
  const std::vector<Stage> stages = stages_of(config);
  std::vector<Product> products{{Product::Kind::patch, 1, grid * grid,
                                 config.in_channels * config.patch_size * config.patch_size, config.width}};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& s = stages[i];
    const std::int64_t n = s.grid * s.grid + token, w = s.width;
    if (i > 0) products.push_back({Product::Kind::merging, 1, n, 2 * w, w});
    for (const auto& [in, out] : {std::pair{w, 3 * w}, {w, w}, {w, s.hidden}, {s.hidden, w}})
      products.push_back({Product::Kind::block, s.depth, n, in, out});
  }
  const std::int64_t channels = stages.back().width / group_of(config).order();
  products.push_back({Product::Kind::head, 1, 1, channels, config.classes});
  return products;
}

struct Counter {
  const ModelConfig& config;
  const Group& group = group_of(config);
  bool equivariant = is_equivariant(config);
  kernels::EqLinearOptions options = {kernels::parse_eq_backend(config.backend),
                                      static_cast<int>(config.products)};

  std::int64_t order() const { return group.order(); }
  /// Input width of the patch embedding as an EQ-Linear.
  std::int64_t orbit_width() const {
    return config.in_channels * orbit_table(group, static_cast<int>(config.patch_size)).orbits() * order();
  }

  /// Patch embedding and merging are dense and have no bias.
  std::int64_t paper(const Product& p) const {
    if (p.kind == Product::Kind::patch || p.kind == Product::Kind::merging) return 2 * p.rows * p.in * p.out;
    const bool dense =
        p.kind == Product::Kind::head || order() == 1 || options.backend == kernels::EqBackend::naive;
    return dense ? dense_flops(p.rows, p.in, p.out)
                 : flash_flops(paper_cost(group), order(), p.rows, p.in, p.out);
  }
  std::int64_t executed(const Product& p) const {
    const std::int64_t in = p.kind == Product::Kind::patch ? orbit_width() : p.in;
    if (p.kind == Product::Kind::merging && !equivariant) return 2 * p.rows * in * p.out;
    if (p.kind == Product::Kind::head || !equivariant) return dense_flops(p.rows, in, p.out);
    const std::string kernel =
        kernels::eq_linear_kernel(group, options, DType::f32, p.rows, in / order(), p.out / order());
    if (!kernel.starts_with("flash")) return dense_flops(p.rows, in, p.out);
    return flash_flops(executed_cost(group, config.products), order(), p.rows, in, p.out);
  }
  /// QKᵀ and AV.
  std::int64_t attention() const {
    std::int64_t flops = 0;
    for (const Stage& s : stages_of(config)) {
      const std::int64_t n = s.window > 0 ? s.grid * s.grid : tokens_of(config);
      const std::int64_t seen = s.window > 0 ? s.window * s.window : n;
      flops += s.depth * 4 * n * seen * s.width;
    }
    return flops;
  }

  std::int64_t parameters(const Product& p) const;
  std::int64_t parameters(const Stage& stage) const;
  std::int64_t position_parameters() const;
};

std::int64_t Counter::parameters(const Product& p) const {
  if (p.kind == Product::Kind::head) return p.out * (p.in + 1);
  const std::int64_t out = p.out / order();
  if (p.kind == Product::Kind::patch) return out * (p.in + 1);
  const std::int64_t norm = 2 * (equivariant ? out : p.in);
  if (p.kind == Product::Kind::merging) return out * (p.in + (equivariant ? 1 : 0)) + norm;
  return p.count * out * (p.in + 1);
}

/// Norms and relative positions; the products are counted elsewhere.
std::int64_t Counter::parameters(const Stage& stage) const {
  const std::int64_t side = 2 * stage.window - 1;
  const std::int64_t places = stage.window > 0 ? side * side * stage.heads : 0;
  return stage.depth * (4 * stage.width / order() + places);
}

/// Position table and class token; the norm of the patches in swin.
std::int64_t Counter::position_parameters() const {
  const std::int64_t channels = config.width / order(), patches = grid_of(config) * grid_of(config);
  if (is_swin(config)) return 2 * channels;
  const std::int64_t token = config.pool == "token" ? channels : 0;
  if (!equivariant) return tokens_of(config) * config.width + token;
  const auto cells =
      config.pos_embed == "full"
          ? patches
          : static_cast<std::int64_t>(quarter_cells(group, static_cast<int>(grid_of(config))).size());
  return cells * channels + 2 * token;
}

}  // namespace

ModelCounts count_model(const ModelConfig& config) {
  const ModelConfig resolved = resolve(config);
  validate(resolved);
  const Counter counter{resolved};
  ModelCounts counts;
  counts.exact = is_exact(resolved);
  counts.parameters = counter.position_parameters();
  counts.total_flops = counts.executed_flops = counter.attention();
  for (const Product& product : products_of(resolved)) {
    const std::int64_t flops = product.count * counter.paper(product);
    if (product.kind != Product::Kind::patch) counts.linear_flops += flops;
    counts.total_flops += flops;
    counts.executed_flops += product.count * counter.executed(product);
    counts.parameters += counter.parameters(product);
  }
  const std::vector<Stage> stages = stages_of(resolved);
  for (const Stage& stage : stages) counts.parameters += counter.parameters(stage);
  counts.parameters += 2 * stages.back().width / counter.order();  // the last norm
  return counts;
}

}  // namespace gyre
