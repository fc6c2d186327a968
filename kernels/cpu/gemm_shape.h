#pragma once

#include <cstddef>
#include <cstdint>

namespace gyre::kernels::cpu {

/// A batch of products C[b] = A[b]·B[b], A m×k, B k×n; strides in elements, of any value for A and B
/// (transposed, sliced, or 0 to share one matrix between the batch). The columns of C are adjacent.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t a_batch = 0, a_row = 0, a_col = 1;
  std::int64_t b_batch = 0, b_row = 0, b_col = 1;
  std::int64_t c_batch = 0, c_row = 0;
  bool operator==(const GemmShape&) const = default;

  std::int64_t work() const { return batch * m * n * k; }
};

/// One operand: `batch` matrices of rows×cols elements.
struct StridedMatrices {
  std::int64_t batch, rows, cols;
  std::int64_t batch_stride, row, col;

  /// Rows or columns adjacent and apart from each other, as matrix kernels ask.
  bool has_unit_stride() const;
  /// The batch follows in order, interleaves rows, or shares one matrix.
  bool has_regular_batch() const;
  /// Without gaps, as it is or transposed.
  bool is_dense() const;
  /// Elements; a shared matrix counts once.
  std::int64_t count() const { return (batch_stride == 0 ? 1 : batch) * rows * cols; }
};

StridedMatrices a_of(const GemmShape& s);
StridedMatrices b_of(const GemmShape& s);
StridedMatrices c_of(const GemmShape& s);

/// The same product with strides of extents of 1 put in order, and the batch folded into the rows where B is
/// shared.
GemmShape canonical(GemmShape s);

/// Row-major copy without gaps; a shared matrix is copied once.
template <class T>
void copy_dense(const StridedMatrices& from, const T* source, T* dense);
/// Inverse for C: rows of `to` take the dense values, added if `accumulate`.
template <class T>
void copy_to_rows(const T* dense, const StridedMatrices& to, T* target, bool accumulate);
/// C = bias or 0: the product for k = 0.
template <class T>
void fill_rows(const StridedMatrices& c, const T* bias, T* target);

/// FNV-1a over 64-bit words.
class HashStream {
 public:
  HashStream& operator<<(std::int64_t value) {
    hash_ = (hash_ ^ static_cast<std::uint64_t>(value)) * 0x100000001b3;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};
std::uint64_t hash_of(const GemmShape& s);

}  // namespace gyre::kernels::cpu
