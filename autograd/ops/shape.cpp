#include "autograd/ops/shape.h"

#include <array>
#include <utility>
#include <vector>

#include "kernels/gather.h"
#include "kernels/reduce.h"

namespace gyre {
namespace {

/// For a view that leaves elements out: the gradient of those is zero. `view` picks the others from a dense
/// tensor.
template <class View>
Variable partial_view(const char* name, const Variable& x, View view) {
  Tensor y = view(x.data());
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result(name, std::move(y), {x}, [view, shape = x.shape()](const Tensor& grad) -> Gradients {
    Tensor dx = Tensor::zeros(shape, grad.dtype(), grad.device());
    view(dx).copy_(grad);
    return {dx};
  });
}

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  Tensor y = x.data().reshape(shape);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("reshape", std::move(y), {x}, [shape_x = x.shape()](const Tensor& grad) -> Gradients {
    return {grad.reshape(shape_x)};
  });
}

Variable permute(const Variable& x, std::span<const int> dims) {
  Tensor y = x.data().permute(dims);
  if (!needs_grad({x})) return Variable(std::move(y));
  std::array<int, Shape::max_rank> inverse{};
  for (int i = 0; i < x.rank(); ++i) {
    const int from = x.shape().wrap(dims[static_cast<std::size_t>(i)]);
    inverse[static_cast<std::size_t>(from)] = i;
  }
  return make_result("permute", std::move(y), {x}, [inverse](const Tensor& grad) -> Gradients {
    return {grad.permute(std::span<const int>(inverse.data(), static_cast<std::size_t>(grad.rank())))};
  });
}

Variable transpose(const Variable& x, int a, int b) {
  Tensor y = x.data().transpose(a, b);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("transpose", std::move(y), {x},
                     [a, b](const Tensor& grad) -> Gradients { return {grad.transpose(a, b)}; });
}

Variable slice(const Variable& x, int dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  return partial_view("slice", x, [=](const Tensor& t) { return t.slice(dim, start, end, step); });
}

Variable select(const Variable& x, int dim, std::int64_t i) {
  return partial_view("select", x, [=](const Tensor& t) { return t.select(dim, i); });
}

Variable expand(const Variable& x, const Shape& shape) {
  Tensor y = x.data().expand(shape);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("expand", std::move(y), {x}, [shape_x = x.shape()](const Tensor& grad) -> Gradients {
    return {kernels::sum_to(grad, shape_x)};
  });
}

Variable unsqueeze(const Variable& x, int dim) {
  Tensor y = x.data().unsqueeze(dim);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("unsqueeze", std::move(y), {x}, [shape_x = x.shape()](const Tensor& grad) -> Gradients {
    return {grad.reshape(shape_x)};
  });
}

Variable concat(std::span<const Variable> parts, int dim) {
  std::vector<Tensor> tensors;
  tensors.reserve(parts.size());
  for (const Variable& part : parts) tensors.push_back(part.data());
  Tensor y = kernels::concat(tensors, dim);
  if (!needs_grad(parts)) return Variable(std::move(y));
  std::vector<std::int64_t> sizes;
  sizes.reserve(parts.size());
  for (const Tensor& tensor : tensors) sizes.push_back(tensor.size(dim));
  return make_result("concat", std::move(y), {parts.begin(), parts.end()},
                     [=](const Tensor& grad) -> Gradients {
                       Gradients grads;
                       grads.reserve(sizes.size());
                       std::int64_t start = 0;
                       for (const std::int64_t size : sizes) {
                         grads.push_back(grad.slice(dim, start, start + size));
                         start += size;
                       }
                       return grads;
                     });
}

Variable gather(const Variable& x, const Tensor& index) {
  Tensor y = kernels::gather(x.data(), index);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("gather", std::move(y), {x},
                     [saved = SavedTensor(index), m = x.size(1)](const Tensor& grad) -> Gradients {
                       return {kernels::gather_backward(grad, saved.unpack("gather"), m)};
                     });
}

Variable permute_rows(const Variable& x, const Tensor& order, const Tensor& inverse) {
  require<ShapeError>(x.rank() == 3 && order.numel() == x.size(1) && inverse.numel() == x.size(1),
                      "permute_rows: x {} does not fit orders of {} and {} rows", x.shape(), order.numel(),
                      inverse.numel());
  Tensor y = kernels::gather_rows(x.data(), order);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("permute_rows", std::move(y), {x},
                     [saved = SavedTensor(inverse)](const Tensor& grad) -> Gradients {
                       return {kernels::gather_rows(grad, saved.unpack("permute_rows"))};
                     });
}

}  // namespace gyre
