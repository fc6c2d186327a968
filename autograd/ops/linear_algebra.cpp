#include "autograd/ops/linear_algebra.h"

#include <utility>

#include "autograd/ops/rows.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace gyre {
namespace {

Tensor data_or_none(const Variable& v) { return v.defined() ? v.data() : Tensor(); }

/// The kernels' gradients, that of x back in the shape of the variable.
Gradients gradients(kernels::LinearGrads grads, const Shape& shape_x) {
  return {grads.x.defined() ? grads.x.reshape(shape_x) : Tensor(), std::move(grads.w), std::move(grads.b)};
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b) {
  Tensor y = kernels::matmul(a.data(), b.data());
  if (!needs_grad({a, b})) return Variable(std::move(y));
  SavedTensor saved_a(b.requires_grad() ? a.data() : Tensor());
  SavedTensor saved_b(a.requires_grad() ? b.data() : Tensor());
  const bool shared_b = b.rank() == 2;
  return make_result("matmul", std::move(y), {a, b}, [=](const Tensor& grad) -> Gradients {
    const Tensor& left = saved_a.unpack("matmul");
    const Tensor& right = saved_b.unpack("matmul");
    Tensor da, db;
    if (right.defined()) da = kernels::matmul(grad, right, false, true);
    if (left.defined()) {
      // One b for all matrices of a: their rows form one tall product.
      db = shared_b ? kernels::matmul(as_rows(left), as_rows(grad), true, false)
                    : kernels::matmul(left, grad, true, false);
    }
    return {da, db};
  });
}

Variable linear(const Variable& x, const Variable& w, const Variable& b,
                std::shared_ptr<kernels::PackedWeight> cache, Activation activation) {
  require<ShapeError>(x.rank() >= 1 && w.rank() == 2 && x.size(-1) == w.size(1),
                      "linear: x {} does not fit the weight {} [out, in]", x.shape(), w.shape());
  Tensor rows = as_rows(x.data());
  Tensor y = kernels::linear_forward(rows, w.data(), data_or_none(b), cache.get()), before;
  if (activation == Activation::gelu) {
    before = y;
    y = kernels::unary(kernels::UnaryOp::gelu, before);
  }
  y = y.reshape(with_last(x.shape(), w.size(0)));
  if (!needs_grad({x, w, b})) return Variable(std::move(y));
  return make_result(
      "linear", std::move(y), {x, w, b},
      [saved_x = SavedTensor(std::move(rows)), saved_w = SavedTensor(w.data()),
       saved_before = SavedTensor(std::move(before)), cache = std::move(cache), shape_x = x.shape(),
       need_x = x.requires_grad(), need_w = w.requires_grad(),
       need_b = b.requires_grad()](const Tensor& grad) -> Gradients {
        return gradients(
            kernels::linear_backward(saved_x.unpack("linear"), saved_w.unpack("linear"), as_rows(grad),
                                     need_x, need_w, need_b, cache.get(), saved_before.unpack("linear")),
            shape_x);
      });
}

Variable eq_linear(const Group& group, const Variable& x, const Variable& w, const Variable& b,
                   EqLinearOptions options, std::shared_ptr<kernels::EqPlanes> planes,
                   Activation activation) {
  const int order = group.order();
  require<ShapeError>(x.rank() >= 1 && w.rank() == 3 && w.size(2) == order && x.size(-1) == w.size(1) * order,
                      "eq_linear: x {} does not fit the weight {} [out, in, {}] of group {}", x.shape(),
                      w.shape(), order, group.name());
  Tensor rows = x.data().reshape({row_count(x.shape()), w.size(1), order});
  const bool record = needs_grad({x, w, b});
  Tensor before;  // the activation; its gradient reads it
  Tensor y =
      kernels::eq_linear_forward(group, rows, w.data(), data_or_none(b), options, planes.get(), activation,
                                 record && activation != Activation::none ? &before : nullptr);
  y = y.reshape(with_last(x.shape(), w.size(0) * order));
  if (!record) return Variable(std::move(y));
  return make_result(
      "eq_linear", std::move(y), {x, w, b},
      [&group, options, saved_x = SavedTensor(std::move(rows)), saved_w = SavedTensor(w.data()),
       saved_before = SavedTensor(std::move(before)), planes = std::move(planes), shape_x = x.shape(),
       need_x = x.requires_grad(), need_w = w.requires_grad(),
       need_b = b.requires_grad()](const Tensor& grad) -> Gradients {
        const Tensor& weight = saved_w.unpack("eq_linear");
        const Tensor dy = grad.reshape({row_count(grad.shape()), weight.size(0), weight.size(2)});
        return gradients(
            kernels::eq_linear_backward(group, saved_x.unpack("eq_linear"), weight, dy, need_x, need_w,
                                        need_b, options, planes.get(), saved_before.unpack("eq_linear")),
            shape_x);
      });
}

}  // namespace gyre
