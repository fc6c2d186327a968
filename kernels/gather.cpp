#include "kernels/gather.h"

#include <vector>

#include "kernels/cpu/gather.h"
#include "kernels/cuda/gather.h"
#include "kernels/index_range.h"
#include "kernels/op.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const Tensor&, Tensor&> gather_op{"gather", cpu::gather,
                                                              GYRE_CUDA_OP(cuda::gather)};
constexpr Op<const Tensor&, const Tensor&, Tensor&> gather_backward_op{
    "gather_backward", cpu::gather_backward, GYRE_CUDA_OP(cuda::gather_backward)};
constexpr Op<const Tensor&, const Tensor&, Tensor&> gather_rows_op{"gather_rows", cpu::gather_rows,
                                                                   GYRE_CUDA_OP(cuda::gather_rows)};
constexpr Op<std::span<const Tensor>, std::int64_t, Tensor&> concat_op{"concat", cpu::concat,
                                                                       GYRE_CUDA_OP(cuda::concat)};

/// The index as a dense tensor, every entry in [0, m).
Tensor checked_index(const Tensor& index, std::int64_t m) {
  require<DTypeError>(index.dtype() == DType::i64, "gather: index must be i64, not {}", index.dtype());
  require<ShapeError>(index.rank() == 1, "gather: index must be [K], not {}", index.shape());
  const Tensor dense = index.contiguous();
  if (const auto outside = first_outside(dense, m))
    throw ValueError(fmt::format("gather: index {} at position {} lies outside [0, {})", outside->value,
                                 outside->position, m));
  return dense;
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& index) {
  require<ShapeError>(x.rank() == 2, "gather takes [B, M], not {}", x.shape());
  require_same_device(x, index, "gather");
  const Tensor dense = checked_index(index, x.size(1));
  Tensor y = Tensor::empty({x.size(0), index.size(0)}, x.dtype(), x.device());
  if (y.numel() > 0) gather_op(x.device(), x.contiguous(), dense, y);
  return y;
}

Tensor gather_backward(const Tensor& grad, const Tensor& index, std::int64_t m) {
  require<ShapeError>(grad.rank() == 2 && index.rank() == 1 && grad.size(1) == index.size(0),
                      "gather_backward: gradient {} does not fit index {}", grad.shape(), index.shape());
  require_same_device(grad, index, "gather_backward");
  const Tensor dense = checked_index(index, m);
  Tensor result = Tensor::empty({grad.size(0), m}, grad.dtype(), grad.device());
  if (result.numel() > 0) gather_backward_op(grad.device(), grad.contiguous(), dense, result);
  return result;
}

Tensor gather_rows(const Tensor& x, const Tensor& index) {
  require<ShapeError>(x.rank() == 3, "gather_rows takes [B, L, C], not {}", x.shape());
  require_same_device(x, index, "gather_rows");
  const Tensor dense = checked_index(index, x.size(1));
  Tensor y = Tensor::empty({x.size(0), index.size(0), x.size(2)}, x.dtype(), x.device());
  if (y.numel() > 0) gather_rows_op(x.device(), x.contiguous(), dense, y);
  return y;
}

Tensor concat(std::span<const Tensor> parts, int dim) {
  require<ShapeError>(!parts.empty(), "concat needs at least one tensor");
  Shape shape = parts[0].shape();
  require<ShapeError>(shape.rank() > 0, "concat takes tensors of rank 1 or more");
  dim = shape.wrap(dim);
  std::vector<Tensor> dense;
  dense.reserve(parts.size());
  shape[dim] = 0;
  for (const Tensor& part : parts) {
    require_same_device(parts[0], part, "concat");
    require_same_dtype(parts[0], part, "concat");
    bool fits = part.rank() == shape.rank();
    for (int i = 0; fits && i < shape.rank(); ++i) fits = i == dim || part.size(i) == shape[i];
    require<ShapeError>(fits, "concat along dimension {}: {} does not fit {}", dim, part.shape(),
                        parts[0].shape());
    shape[dim] += part.size(dim);
    if (part.numel() > 0) dense.push_back(part.contiguous());
  }
  Tensor y = Tensor::empty(shape, parts[0].dtype(), parts[0].device());
  std::int64_t outer = 1;
  for (int i = 0; i < dim; ++i) outer *= shape[i];
  if (y.numel() > 0) concat_op(y.device(), dense, outer, y);
  return y;
}

}  // namespace gyre::kernels
