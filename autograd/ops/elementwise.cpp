#include "autograd/ops/elementwise.h"

#include <utility>

#include "kernels/elementwise.h"
#include "kernels/reduce.h"

namespace gyre {
namespace {

using kernels::BinaryOp;
using kernels::UnaryOp;

/// Which value of y = f(x) the derivative is computed from.
enum class Reads { input, output };

Variable unary(const char* name, UnaryOp op, Reads reads, const Variable& x) {
  Tensor y = kernels::unary(op, x.data());
  if (!needs_grad({x})) return Variable(std::move(y));
  SavedTensor saved(reads == Reads::input ? x.data() : y);
  return make_result(name, std::move(y), {x}, [=](const Tensor& grad) -> Gradients {
    const Tensor& value = saved.unpack(name);
    return {reads == Reads::input ? kernels::unary_backward(op, value, Tensor(), grad)
                                  : kernels::unary_backward(op, Tensor(), value, grad)};
  });
}

}  // namespace

Variable add(const Variable& a, const Variable& b) {
  Tensor y = kernels::binary(BinaryOp::add, a.data(), b.data());
  if (!needs_grad({a, b})) return Variable(std::move(y));
  return make_result("add", std::move(y), {a, b},
                     [shape_a = a.shape(), shape_b = b.shape(), need_a = a.requires_grad(),
                      need_b = b.requires_grad()](const Tensor& grad) -> Gradients {
                       return {need_a ? kernels::sum_to(grad, shape_a) : Tensor(),
                               need_b ? kernels::sum_to(grad, shape_b) : Tensor()};
                     });
}

Variable sub(const Variable& a, const Variable& b) {
  Tensor y = kernels::binary(BinaryOp::sub, a.data(), b.data());
  if (!needs_grad({a, b})) return Variable(std::move(y));
  return make_result("sub", std::move(y), {a, b},
                     [shape_a = a.shape(), shape_b = b.shape(), need_a = a.requires_grad(),
                      need_b = b.requires_grad()](const Tensor& grad) -> Gradients {
                       return {
                           need_a ? kernels::sum_to(grad, shape_a) : Tensor(),
                           need_b ? kernels::unary(UnaryOp::neg, kernels::sum_to(grad, shape_b)) : Tensor()};
                     });
}

Variable mul(const Variable& a, const Variable& b) {
  Tensor y = kernels::binary(BinaryOp::mul, a.data(), b.data());
  if (!needs_grad({a, b})) return Variable(std::move(y));
  // Each factor is kept for the gradient of the other one.
  SavedTensor saved_a(b.requires_grad() ? a.data() : Tensor());
  SavedTensor saved_b(a.requires_grad() ? b.data() : Tensor());
  return make_result("mul", std::move(y), {a, b},
                     [=, shape_a = a.shape(), shape_b = b.shape()](const Tensor& grad) -> Gradients {
                       const auto product = [&grad](const SavedTensor& saved, const Shape& shape) {
                         const Tensor& factor = saved.unpack("mul");
                         if (!factor.defined()) return Tensor();
                         return kernels::sum_to(kernels::binary(BinaryOp::mul, grad, factor), shape);
                       };
                       return {product(saved_b, shape_a), product(saved_a, shape_b)};
                     });
}

Variable div(const Variable& a, const Variable& b) {
  Tensor y = kernels::binary(BinaryOp::div, a.data(), b.data());
  if (!needs_grad({a, b})) return Variable(std::move(y));
  SavedTensor saved_b(b.data());
  SavedTensor saved_y(b.requires_grad() ? y : Tensor());
  return make_result("div", std::move(y), {a, b},
                     [=, shape_a = a.shape(), shape_b = b.shape(),
                      need_a = a.requires_grad()](const Tensor& grad) -> Gradients {
                       const Tensor da = kernels::binary(BinaryOp::div, grad, saved_b.unpack("div"));
                       const Tensor& quotient = saved_y.unpack("div");
                       Tensor db;
                       if (quotient.defined()) {
                         db = kernels::sum_to(kernels::binary(BinaryOp::mul, da, quotient), shape_b);
                         db = kernels::unary(UnaryOp::neg, db);
                       }
                       return {need_a ? kernels::sum_to(da, shape_a) : Tensor(), db};
                     });
}

Variable neg(const Variable& x) {
  Tensor y = kernels::unary(UnaryOp::neg, x.data());
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("neg", std::move(y), {x},
                     [](const Tensor& grad) -> Gradients { return {kernels::unary(UnaryOp::neg, grad)}; });
}

Variable exp(const Variable& x) { return unary("exp", UnaryOp::exp, Reads::output, x); }
Variable log(const Variable& x) { return unary("log", UnaryOp::log, Reads::input, x); }
Variable sqrt(const Variable& x) { return unary("sqrt", UnaryOp::sqrt, Reads::output, x); }
Variable tanh(const Variable& x) { return unary("tanh", UnaryOp::tanh, Reads::output, x); }
Variable relu(const Variable& x) { return unary("relu", UnaryOp::relu, Reads::input, x); }
Variable gelu(const Variable& x) { return unary("gelu", UnaryOp::gelu, Reads::input, x); }

Variable affine(const Variable& x, double scale, double shift) {
  Tensor y = kernels::affine(x.data(), scale, shift);
  if (!needs_grad({x})) return Variable(std::move(y));
  return make_result("affine", std::move(y), {x},
                     [scale](const Tensor& grad) -> Gradients { return {kernels::affine(grad, scale, 0)}; });
}

}  // namespace gyre
