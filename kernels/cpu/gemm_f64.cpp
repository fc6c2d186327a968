#define EIGEN_DONT_PARALLELIZE  // threads come from parallel_for
#include "kernels/cpu/gemm_f64.h"

#include <Eigen/Core>
#include <algorithm>

#include "core/parallel.h"

namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t block_rows = 256;
constexpr std::int64_t task_work = 1 << 15;  // multiply-adds

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
using Rows = Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>;
using Columns = Eigen::Map<const ColMajor, 0, Eigen::OuterStride<>>;

/// Calls f with the cheapest Eigen view of one matrix: adjacent rows, adjacent columns, or a copy.
template <class F>
void with_view(const double* data, std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col,
               F&& f) {
  if (col == 1 && row >= cols) {
    f(Rows(data, rows, cols, Eigen::OuterStride<>(row)));
  } else if (row == 1 && col >= rows) {
    f(Columns(data, rows, cols, Eigen::OuterStride<>(col)));
  } else {
    const RowMajor copy = RowMajor::NullaryExpr(
        rows, cols, [&](Eigen::Index i, Eigen::Index j) { return data[i * row + j * col]; });
    f(Rows(copy.data(), rows, cols, Eigen::OuterStride<>(cols)));
  }
}

}  // namespace

void gemm_f64(const GemmShape& shape, const double* a, const double* b, double* c, bool accumulate,
              const double* bias) {
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  if (!accumulate) fill_rows(c_of(shape), bias, c);
  if (shape.k == 0) return;
  const GemmShape s = canonical(shape);
  const std::int64_t blocks = (s.m + block_rows - 1) / block_rows;
  const std::int64_t grain = std::max<std::int64_t>(1, task_work / (std::min(s.m, block_rows) * s.n * s.k));
  parallel_for(0, s.batch * blocks, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t task = first; task < last; ++task) {
      const std::int64_t i = task / blocks, row = task % blocks * block_rows;
      const std::int64_t rows = std::min(block_rows, s.m - row);
      Eigen::Map<RowMajor, 0, Eigen::OuterStride<>> result(c + i * s.c_batch + row * s.c_row, rows, s.n,
                                                           Eigen::OuterStride<>(s.c_row));
      with_view(a + i * s.a_batch + row * s.a_row, rows, s.k, s.a_row, s.a_col, [&](const auto& left) {
        with_view(b + i * s.b_batch, s.k, s.n, s.b_row, s.b_col,
                  [&](const auto& right) { result.noalias() += left * right; });
      });
    }
  });
}

}  // namespace gyre::kernels::cpu
