#include "kernels/reduce.h"

#include <array>
#include <string_view>

#include "kernels/cpu/reduce.h"
#include "kernels/cuda/reduce.h"
#include "kernels/elementwise.h"
#include "kernels/op.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, std::int64_t, std::int64_t, std::int64_t, Tensor&> sum_op{
    "sum", cpu::sum_middle, GYRE_CUDA_OP(cuda::sum_middle)};
constexpr Op<const Tensor&, std::vector<std::int64_t>&> argmax_op{"argmax", cpu::argmax_rows,
                                                                  GYRE_CUDA_OP(cuda::argmax_rows)};

using Flags = std::array<bool, Shape::max_rank>;

Flags mark(const Tensor& x, std::span<const int> dims, std::string_view what) {
  Flags reduced{};
  for (const int dim : dims) {
    const auto i = static_cast<std::size_t>(x.shape().wrap(dim));
    require<ShapeError>(!reduced[i], "{}: dimension {} of {} is named twice", what, dim, x.shape());
    reduced[i] = true;
  }
  return reduced;
}

/// Sums over the marked dimensions, which keep extent 1; one pass per run of neighbours, from the inside. In
/// the wide type, unless nothing was to add.
Tensor sum_marked(const Tensor& x, const Flags& reduced) {
  Tensor current = x.contiguous();
  for (int end = x.rank(); end > 0;) {
    if (!reduced[static_cast<std::size_t>(end - 1)]) {
      --end;
      continue;
    }
    int begin = end;
    while (begin > 0 && reduced[static_cast<std::size_t>(begin - 1)]) --begin;
    Shape shape = current.shape();
    std::int64_t outer = 1, extent = 1, inner = 1;
    for (int dim = 0; dim < shape.rank(); ++dim)
      (dim < begin ? outer : dim < end ? extent : inner) *= shape[dim];
    for (int dim = begin; dim < end; ++dim) shape[dim] = 1;
    if (extent == 1) {
      current = current.reshape(shape);
    } else {
      Tensor y = Tensor::empty(shape, wide_type(x.dtype()), x.device());
      if (y.numel() > 0) sum_op(x.device(), current, outer, extent, inner, y);
      current = y;
    }
    end = begin;
  }
  return current;
}

Tensor drop_marked(const Tensor& x, const Flags& reduced) {
  Shape shape;
  for (int dim = 0; dim < x.rank(); ++dim)
    if (!reduced[static_cast<std::size_t>(dim)]) shape.push_back(x.size(dim));
  return x.reshape(shape);
}

}  // namespace

Tensor sum(const Tensor& x, std::span<const int> dims, bool keep_dim) {
  require_computable(x, "sum");
  const Flags reduced = mark(x, dims, "sum");
  Tensor y = sum_marked(x, reduced).to(x.dtype());
  if (y.storage() == x.storage()) y = y.clone();
  return keep_dim ? y : drop_marked(y, reduced);
}

Tensor wide_sum(const Tensor& x, std::span<const int> dims, bool keep_dim) {
  require_computable(x, "sum");
  const Flags reduced = mark(x, dims, "sum");
  Tensor y = sum_marked(x, reduced).to(wide_type(x.dtype()));
  if (y.storage() == x.storage()) y = y.clone();
  return keep_dim ? y : drop_marked(y, reduced);
}

Tensor mean(const Tensor& x, std::span<const int> dims, bool keep_dim) {
  require_computable(x, "mean");
  const Flags reduced = mark(x, dims, "mean");
  std::int64_t count = 1;
  for (const int dim : dims) count *= x.size(dim);
  require<ShapeError>(count > 0, "mean: no elements to average in {}", x.shape());
  // The sum of f16 may overflow where the mean does not.
  const Tensor sums = sum_marked(x, reduced);
  const Tensor y = affine(sums, 1.0 / static_cast<double>(count), 0.0).to(x.dtype());
  return keep_dim ? y : drop_marked(y, reduced);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require_computable(x, "sum_to");
  const int missing = x.rank() - shape.rank();
  bool fits = missing >= 0;
  Flags reduced{};
  for (int dim = 0; fits && dim < x.rank(); ++dim) {
    const std::int64_t wanted = dim < missing ? 1 : shape[dim - missing];
    fits = wanted == 1 || wanted == x.size(dim);
    reduced[static_cast<std::size_t>(dim)] = dim < missing || wanted != x.size(dim);
  }
  require<ShapeError>(fits, "sum_to: {} does not broadcast to {}", shape, x.shape());
  return sum_marked(x, reduced).to(x.dtype()).reshape(shape);
}

std::vector<std::int64_t> argmax_rows(const Tensor& x) {
  require_computable(x, "argmax_rows");
  require<ShapeError>(x.rank() == 2 && x.size(1) >= 1, "argmax_rows takes [N, K] with K >= 1, not {}",
                      x.shape());
  std::vector<std::int64_t> result(static_cast<std::size_t>(x.size(0)));
  if (!result.empty()) argmax_op(x.device(), x.contiguous(), result);
  return result;
}

}  // namespace gyre::kernels
