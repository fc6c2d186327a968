#include "kernels/cuda/blas.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/eq_linear.h"
#include "kernels/cuda/group_permute_launch.h"
#include "kernels/cuda/linear.h"
#include "kernels/eq_planes.h"

namespace gyre::kernels::cuda {
namespace {

/// Element t·s, or t⁻¹·s if `inverse`.
PairTable table_of(const Group& group, bool inverse) {
  PairTable table{group.order()};
  for (int t = 0; t < group.order(); ++t)
    for (int s = 0; s < group.order(); ++s) table.index[t][s] = group.mul(inverse ? group.inv(t) : t, s);
  return table;
}

}  // namespace

void expand_eq_weight(const Group& group, const Tensor& w, Tensor& dense) {
  dispatch(w.dtype(), "expand_eq_weight", [&]<class T>(std::type_identity<T>) {
    launch_repeat_permuted(table_of(group, true), w.size(0), w.size(1), data_of<T>(w),
                           mutable_data_of<T>(dense), stream_of(w));
  });
}

void fold_eq_weight(const Group& group, const Tensor& dense, Tensor& w) {
  dispatch(w.dtype(), "fold_eq_weight", [&]<class T>(std::type_identity<T>) {
    launch_sum_permuted(table_of(group, false), w.size(0), w.size(1), data_of<T>(dense),
                        mutable_data_of<T>(w), stream_of(w));
  });
}

void naive_eq_linear_forward(const EqForward& call, Tensor& y) {
  const auto dense = dense_eq_layer(call.group, call.w, call.b, call.cache.state());
  const std::int64_t rows = call.x.size(0), in = dense->matrix.size(1), out = dense->matrix.size(0);
  GemmOptions options;
  if (call.b.defined()) options.bias = dense->bias.raw_data();
  if (call.activation == Activation::gelu) {
    options.activation = GemmActivation::gelu;
    if (call.pre_activation) options.pre_activation = call.pre_activation->raw_mutable_data();
  }
  gemm(y.device(), y.dtype(),
       {.m = rows, .n = out, .k = in, .a_row = in, .b_row = 1, .b_col = in, .c_row = out}, call.x.raw_data(),
       dense->matrix.raw_data(), y.raw_mutable_data(), options);
}

void naive_eq_linear_backward(const EqBackward& call, LinearGrads& grads) {
  if (call.need_x && grads.x.numel() > 0)
    linear_grad_x(dense_eq_layer(call.group, call.w, {}, call.cache.state())->matrix, call.grad, nullptr,
                  grads.x);
  if (call.need_w && grads.w.numel() > 0) {
    const std::int64_t order = call.group.order();
    Tensor dense =
        Tensor::empty({call.w.size(0) * order, call.w.size(1) * order}, grads.w.dtype(), call.w.device());
    linear_grad_w(call.x, call.grad, dense);
    fold_eq_weight(call.group, dense, grads.w);
  }
}

}  // namespace gyre::kernels::cuda
