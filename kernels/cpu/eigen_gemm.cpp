#define EIGEN_DONT_PARALLELIZE  // threads come from parallel_for
#include "kernels/cpu/eigen_gemm.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>

#include "core/parallel.h"

namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t block_rows = 256;
constexpr std::int64_t task_work = 1 << 15;  // multiply-adds

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ColMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
template <class T>
using Rows = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;
template <class T>
using Columns = Eigen::Map<const ColMajor<T>, 0, Eigen::OuterStride<>>;

/// Calls f with the cheapest Eigen view of one matrix: adjacent rows, adjacent columns, or a copy.
template <class T, class F>
void with_view(const T* data, std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col,
               F&& f) {
  if (col == 1 && row >= cols) {
    f(Rows<T>(data, rows, cols, Eigen::OuterStride<>(row)));
  } else if (row == 1 && col >= rows) {
    f(Columns<T>(data, rows, cols, Eigen::OuterStride<>(col)));
  } else {
    const RowMajor<T> copy = RowMajor<T>::NullaryExpr(
        rows, cols, [&](Eigen::Index i, Eigen::Index j) { return data[i * row + j * col]; });
    f(Rows<T>(copy.data(), rows, cols, Eigen::OuterStride<>(cols)));
  }
}

}  // namespace

template <class T>
void eigen_gemm(const GemmShape& shape, const T* a, const T* b, T* c, bool accumulate, const T* bias) {
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
      Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>> result(c + i * s.c_batch + row * s.c_row, rows, s.n,
                                                              Eigen::OuterStride<>(s.c_row));
      with_view(a + i * s.a_batch + row * s.a_row, rows, s.k, s.a_row, s.a_col, [&](const auto& left) {
        with_view(b + i * s.b_batch, s.k, s.n, s.b_row, s.b_col,
                  [&](const auto& right) { result.noalias() += left * right; });
      });
    }
  });
}

template void eigen_gemm(const GemmShape&, const float*, const float*, float*, bool, const float*);
template void eigen_gemm(const GemmShape&, const double*, const double*, double*, bool, const double*);

std::string eigen_version() {
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
}

}  // namespace gyre::kernels::cpu
