#include "autograd/ops/reduction.h"

#include <array>
#include <numeric>
#include <utility>

#include "kernels/elementwise.h"
#include "kernels/reduce.h"

namespace gyre {
namespace {

using Reduce = Tensor (*)(const Tensor&, std::span<const int>, bool);

/// Every reduced element receives the gradient, divided by their count if the kernel averages.
Variable reduce(const char* name, Reduce kernel, const Variable& x, std::span<const int> dims, bool keep_dim,
                bool averages) {
  Tensor y = kernel(x.data(), dims, keep_dim);
  if (!needs_grad({x})) return Variable(std::move(y));
  Shape kept = x.shape();
  for (const int dim : dims) kept[dim] = 1;
  const double factor =
      averages ? static_cast<double>(y.numel()) / static_cast<double>(x.data().numel()) : 1.0;
  return make_result(name, std::move(y), {x}, [=, shape = x.shape()](const Tensor& grad) -> Gradients {
    const Tensor scaled = factor == 1 ? grad : kernels::affine(grad, factor, 0);
    return {scaled.reshape(kept).expand(shape)};
  });
}

struct AllDims {
  std::array<int, Shape::max_rank> dims;
  int rank;

  explicit AllDims(int count) : rank(count) { std::iota(dims.begin(), dims.end(), 0); }
  std::span<const int> span() const { return {dims.data(), static_cast<std::size_t>(rank)}; }
};

}  // namespace

Variable sum(const Variable& x) { return sum(x, AllDims(x.rank()).span()); }
Variable mean(const Variable& x) { return mean(x, AllDims(x.rank()).span()); }

Variable sum(const Variable& x, std::span<const int> dims, bool keep_dim) {
  return reduce("sum", kernels::sum, x, dims, keep_dim, false);
}

Variable mean(const Variable& x, std::span<const int> dims, bool keep_dim) {
  return reduce("mean", kernels::mean, x, dims, keep_dim, true);
}

}  // namespace gyre
