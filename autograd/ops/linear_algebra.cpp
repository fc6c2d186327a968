#include "autograd/ops/linear_algebra.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/ops/rows.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/typed_copy.h"

namespace gyre {
namespace {

/// The data of w or b as the product takes it: in the type of the autocast scope, from the layer's copy if
/// there is one.
Tensor parameter(const Variable& v, kernels::TypedCopy* copy) {
  if (!v.defined()) return {};
  const std::optional<DType> type = autocast_type();
  if (!type) return v.data();
  return copy != nullptr ? copy->of(v.data(), *type) : v.data().to(*type);
}

/// Parameters of a layer and what their gradients need.
struct LayerParameters {
  Tensor w, b;
  DType master;  ///< type of both outside the product

  LayerParameters(const Variable& weight, const Variable& bias, kernels::LayerCopies* copies)
      : w(parameter(weight, copies ? &copies->weight : nullptr)),
        b(parameter(bias, copies ? &copies->bias : nullptr)),
        master(weight.dtype()) {}
};

/// The kernels' gradients as the variables take them: x in its shape, parameters in their type.
Gradients gradients(kernels::LinearGrads grads, const Shape& shape_x, DType master) {
  const auto typed = [master](const Tensor& grad) { return grad.defined() ? grad.to(master) : grad; };
  return {grads.x.defined() ? grads.x.reshape(shape_x) : Tensor(), typed(grads.w), typed(grads.b)};
}

}  // namespace

Variable matmul(const Variable& left_factor, const Variable& right_factor) {
  const Variable a = autocast(left_factor), b = autocast(right_factor);
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
  const Variable factor = autocast(x);
  LayerParameters layer(w, b, cache ? &cache->copies() : nullptr);
  Tensor rows = as_rows(factor.data());
  Tensor y = kernels::linear_forward(rows, layer.w, layer.b, cache.get()), before;
  if (activation == Activation::gelu) {
    before = y;
    y = kernels::unary(kernels::UnaryOp::gelu, before);
  }
  y = y.reshape(with_last(x.shape(), w.size(0)));
  if (!needs_grad({x, w, b})) return Variable(std::move(y));
  return make_result(
      "linear", std::move(y), {factor, w, b},
      [saved_x = SavedTensor(std::move(rows)), saved_w = SavedTensor(std::move(layer.w)),
       saved_before = SavedTensor(std::move(before)), cache = std::move(cache), shape_x = x.shape(),
       master = layer.master, need_x = x.requires_grad(), need_w = w.requires_grad(),
       need_b = b.requires_grad()](const Tensor& grad) -> Gradients {
        return gradients(
            kernels::linear_backward(saved_x.unpack("linear"), saved_w.unpack("linear"), as_rows(grad),
                                     need_x, need_w, need_b, cache.get(), saved_before.unpack("linear")),
            shape_x, master);
      });
}

Variable eq_linear(const Group& group, const Variable& x, const Variable& w, const Variable& b,
                   EqLinearOptions options, std::shared_ptr<kernels::EqPlanes> planes,
                   Activation activation) {
  const int order = group.order();
  require<ShapeError>(x.rank() >= 1 && w.rank() == 3 && w.size(2) == order && x.size(-1) == w.size(1) * order,
                      "eq_linear: x {} does not fit the weight {} [out, in, {}] of group {}", x.shape(),
                      w.shape(), order, group.name());
  const Variable factor = autocast(x);
  LayerParameters layer(w, b, planes ? &planes->copies() : nullptr);
  Tensor rows = factor.data().reshape({row_count(x.shape()), w.size(1), order});
  const bool record = needs_grad({x, w, b});
  Tensor before;  // the activation; its gradient reads it
  Tensor y = kernels::eq_linear_forward(group, rows, layer.w, layer.b, options, planes.get(), activation,
                                        record && activation != Activation::none ? &before : nullptr);
  y = y.reshape(with_last(x.shape(), w.size(0) * order));
  if (!record) return Variable(std::move(y));
  return make_result(
      "eq_linear", std::move(y), {factor, w, b},
      [&group, options, saved_x = SavedTensor(std::move(rows)), saved_w = SavedTensor(std::move(layer.w)),
       saved_before = SavedTensor(std::move(before)), planes = std::move(planes), shape_x = x.shape(),
       master = layer.master, need_x = x.requires_grad(), need_w = w.requires_grad(),
       need_b = b.requires_grad()](const Tensor& grad) -> Gradients {
        const Tensor& weight = saved_w.unpack("eq_linear");
        const Tensor dy = grad.reshape({row_count(grad.shape()), weight.size(0), weight.size(2)});
        return gradients(
            kernels::eq_linear_backward(group, saved_x.unpack("eq_linear"), weight, dy, need_x, need_w,
                                        need_b, options, planes.get(), saved_before.unpack("eq_linear")),
            shape_x, master);
      });
}

}  // namespace gyre
