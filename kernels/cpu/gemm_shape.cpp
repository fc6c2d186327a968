#include "kernels/cpu/gemm_shape.h"

#include <algorithm>

#include "core/parallel.h"

namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t copy_grain = 16384;  // elements per task

std::int64_t rows_per_task(std::int64_t cols) {
  return std::max<std::int64_t>(1, copy_grain / std::max<std::int64_t>(1, cols));
}

void simplify(std::int64_t batch, std::int64_t rows, std::int64_t cols, std::int64_t& batch_stride,
              std::int64_t& row, std::int64_t& col) {
  if (batch == 1) batch_stride = 0;
  if (cols == 1) {
    col = 1;
    if (rows == 1) row = 1;
  } else if (rows == 1) {
    row = col == 1 ? cols : 1;
  }
}

}  // namespace

bool StridedMatrices::has_unit_stride() const {
  return (col == 1 && row >= cols) || (row == 1 && col >= rows);
}

bool StridedMatrices::has_regular_batch() const {
  if (batch == 1 || batch_stride == 0) return true;
  const bool by_rows = col == 1 && row >= cols;
  const std::int64_t outer = by_rows ? row : col, outer_count = by_rows ? rows : cols,
                     inner_count = by_rows ? cols : rows;
  return batch_stride >= outer_count * outer ||
         (batch_stride >= inner_count && outer >= batch * batch_stride);
}

bool StridedMatrices::is_dense() const {
  const bool matrix = (col == 1 && row == cols) || (row == 1 && col == rows);
  return matrix && (batch == 1 || batch_stride == 0 || batch_stride == rows * cols);
}

StridedMatrices a_of(const GemmShape& s) { return {s.batch, s.m, s.k, s.a_batch, s.a_row, s.a_col}; }
StridedMatrices b_of(const GemmShape& s) { return {s.batch, s.k, s.n, s.b_batch, s.b_row, s.b_col}; }
StridedMatrices c_of(const GemmShape& s) { return {s.batch, s.m, s.n, s.c_batch, s.c_row, 1}; }

GemmShape canonical(GemmShape s) {
  if (s.batch > 1 && s.b_batch == 0 && s.a_batch == s.m * s.a_row && s.c_batch == s.m * s.c_row) {
    s.m *= s.batch;
    s.batch = 1;
  }
  simplify(s.batch, s.m, s.k, s.a_batch, s.a_row, s.a_col);
  simplify(s.batch, s.k, s.n, s.b_batch, s.b_row, s.b_col);
  if (s.batch == 1) s.c_batch = 0;
  if (s.m == 1) s.c_row = s.n;
  return s;
}

template <class T>
void copy_dense(const StridedMatrices& from, const T* source, T* dense) {
  const std::int64_t batch = from.batch_stride == 0 ? 1 : from.batch;
  parallel_for(0, batch * from.rows, rows_per_task(from.cols), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const T* row = source + i / from.rows * from.batch_stride + i % from.rows * from.row;
      T* to = dense + i * from.cols;
      if (from.col == 1)
        std::copy_n(row, from.cols, to);
      else
        for (std::int64_t j = 0; j < from.cols; ++j) to[j] = row[j * from.col];
    }
  });
}

template <class T>
void copy_to_rows(const T* dense, const StridedMatrices& to, T* target, bool accumulate) {
  parallel_for(0, to.batch * to.rows, rows_per_task(to.cols), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const T* row = dense + i * to.cols;
      T* c = target + i / to.rows * to.batch_stride + i % to.rows * to.row;
      if (accumulate)
        for (std::int64_t j = 0; j < to.cols; ++j) c[j] += row[j];
      else
        std::copy_n(row, to.cols, c);
    }
  });
}

template <class T>
void fill_rows(const StridedMatrices& c, const T* bias, T* target) {
  parallel_for(0, c.batch * c.rows, rows_per_task(c.cols), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      T* row = target + i / c.rows * c.batch_stride + i % c.rows * c.row;
      if (bias != nullptr)
        std::copy_n(bias, c.cols, row);
      else
        std::fill_n(row, c.cols, T(0));
    }
  });
}

template void copy_dense(const StridedMatrices&, const float*, float*);
template void copy_dense(const StridedMatrices&, const double*, double*);
template void copy_to_rows(const float*, const StridedMatrices&, float*, bool);
template void fill_rows(const StridedMatrices&, const float*, float*);
template void fill_rows(const StridedMatrices&, const double*, double*);

std::uint64_t hash_of(const GemmShape& s) {
  HashStream hash;
  hash << s.batch << s.m << s.n << s.k << s.a_batch << s.a_row << s.a_col << s.b_batch << s.b_row << s.b_col
       << s.c_batch << s.c_row;
  return hash.value();
}

}  // namespace gyre::kernels::cpu
