#include "core/bilinear.h"

#include <cstddef>

namespace gyre {

namespace {

// One product of a block: (input · f)(weight · w) is added to a by `output`; all three run over the block's
// slots.
struct Product {
  std::vector<double> input, weight, output;
};

std::vector<Product> real_products() { return {{{1}, {1}, {1}}}; }

// Slots (re, im): a_re = f_re w_re - f_im w_im, a_im = f_re w_im + f_im w_re.
std::vector<Product> complex_products(BlockProducts products) {
  if (products == BlockProducts::plain)
    return {{{1, 0}, {1, 0}, {1, 0}},
            {{0, 1}, {0, 1}, {-1, 0}},
            {{1, 0}, {0, 1}, {0, 1}},
            {{0, 1}, {1, 0}, {0, 1}}};
  // a_re = k1 - k3 and a_im = k1 + k2 with k1 = w_re (f_re + f_im), k2 = f_re (w_im - w_re), k3 = f_im (w_re
  // + w_im).
  return {{{1, 1}, {1, 0}, {1, 1}}, {{1, 0}, {-1, 1}, {0, 1}}, {{0, 1}, {1, 1}, {-1, 0}}};
}

// Slots (11, 12, 21, 22): a_ij = Σ_k w_ik f_kj.
std::vector<Product> matrix_products(BlockProducts products) {
  std::vector<Product> result;
  if (products == BlockProducts::plain) {
    const auto unit = [](int row, int col) {
      std::vector<double> e(4);
      e[static_cast<std::size_t>(2 * row + col)] = 1;
      return e;
    };
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int k = 0; k < 2; ++k) result.push_back({unit(k, j), unit(i, k), unit(i, j)});
    return result;
  }
  // Strassen's m1 … m7.
  return {{{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},  {{1, 0, 0, 0}, {0, 0, 1, 1}, {0, 0, 1, -1}},
          {{0, 1, 0, -1}, {1, 0, 0, 0}, {0, 1, 0, 1}}, {{-1, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 1, 0}},
          {{0, 0, 0, 1}, {1, 1, 0, 0}, {-1, 1, 0, 0}}, {{1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 0, 0, 1}},
          {{0, 0, 1, 1}, {0, 1, 0, -1}, {1, 0, 0, 0}}};
}

std::vector<Product> products_of(FourierBlock::Kind kind, BlockProducts products) {
  switch (kind) {
    case FourierBlock::Kind::real: return real_products();
    case FourierBlock::Kind::complex: return complex_products(products);
    case FourierBlock::Kind::matrix: return matrix_products(products);
  }
  return {};
}

}  // namespace

BilinearForm make_bilinear_form(const Matrix& fourier, std::span<const double> scale,
                                std::span<const int> inverse, std::span<const FourierBlock> blocks,
                                BlockProducts products) {
  int count = 0;
  for (const FourierBlock& block : blocks)
    count += static_cast<int>(products_of(block.kind, products).size());
  const int order = fourier.cols;
  BilinearForm form{Matrix(count, order), Matrix(count, order), Matrix(order, count)};
  int p = 0;
  for (const FourierBlock& block : blocks) {
    for (const Product& product : products_of(block.kind, products)) {
      for (std::size_t i = 0; i < block.slots.size(); ++i) {
        const int slot = block.slots[i];
        const double slot_scale = scale[static_cast<std::size_t>(slot)];
        for (int t = 0; t < order; ++t) {
          form.input(p, t) += product.input[i] * fourier(slot, t);
          // Planes are F(V) with V_r = W_{r⁻¹}.
          form.weight(p, inverse[static_cast<std::size_t>(t)]) +=
              slot_scale * product.weight[i] * fourier(slot, t);
          form.output(t, p) += product.output[i] * fourier(slot, t);
        }
      }
      ++p;
    }
  }
  return form;
}

}  // namespace gyre
