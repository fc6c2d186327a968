#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// Dense row-major matrix of small constants.
struct Matrix {
  int rows = 0, cols = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(int row_count, int col_count)
      : rows(row_count),
        cols(col_count),
        values(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(col_count)) {}
  double operator()(int r, int c) const { return values[static_cast<std::size_t>(r * cols + c)]; }
  double& operator()(int r, int c) { return values[static_cast<std::size_t>(r * cols + c)]; }
  Matrix transposed() const;
};
Matrix operator*(const Matrix& a, const Matrix& b);

/// An irreducible real block of the group Fourier transform: its slots among the T outputs of F.
struct FourierBlock {
  enum class Kind { real, complex, matrix } kind;
  std::vector<int> slots;  ///< 1, 2 (re, im) or 4 (row-major 2×2) indices
};

/// How one group product x ∗ W is computed with few multiplications (bilinear algorithm):
/// y = output · ((input · x) ∘ (weight · W)), with one dense matrix product per row of `input`.
/// The transpose serves the backward (Tellegen): dx = inputᵀ((weight W) ∘ (outputᵀ dy)), dW likewise.
struct BilinearForm {
  Matrix input;   ///< [P, T]: F and sums of its slots
  Matrix weight;  ///< [P, T]: weight planes, the inverse's scale folded in
  Matrix output;  ///< [T, P]
  int products() const { return input.rows; }
};

/// A finite symmetry group of order T, its Fourier transform and its action on images (docs/math.md).
class Group {
 public:
  /// "c1", "c2", "mirror", "c4", "c8" or "d4"; throws ValueError naming the legal ones.
  static const Group& get(std::string_view name);
  static std::span<const std::string_view> names();

  const std::string& name() const { return name_; }
  int order() const { return order_; }
  /// a·b: first b, then a.
  int mul(int a, int b) const { return mul_[static_cast<std::size_t>(a * order_ + b)]; }
  int inv(int a) const { return inv_[static_cast<std::size_t>(a)]; }
  /// F as rows of slots [T, T] (docs/math.md section 3).
  const Matrix& fourier() const { return fourier_; }
  /// F⁻¹ = Fᵀ diag(scale).
  std::span<const double> scale() const { return scale_; }
  const std::vector<FourierBlock>& blocks() const { return blocks_; }
  /// Products of the plain block form (6 for c4) and of the fewest (5 for c4).
  const BilinearForm& plain_form() const { return plain_; }
  const BilinearForm& fewest_form() const { return fewest_; }
  /// False for c8: a 45° turn does not map the pixel grid to itself.
  bool has_image_action() const { return !image_elements_.empty(); }
  /// Element t as a d4 element k + 4f: reverse columns if f, then k quarter turns. Throws ValueError for c8.
  int image_element(int t) const;
  /// True if some element turns height into width (needs square images).
  bool swaps_axes() const;

 private:
  friend class GroupBuilder;
  std::string name_;
  int order_ = 1;
  std::vector<int> mul_, inv_, image_elements_;
  Matrix fourier_;
  std::vector<double> scale_;
  std::vector<FourierBlock> blocks_;
  BilinearForm plain_, fewest_;
};

}  // namespace gyre
