#include "kernels/cpu/group_permute.h"
#include "kernels/cuda/eq_linear.h"
#include "kernels/eq_linear.h"
#include "kernels/op.h"

namespace gyre::kernels {
namespace {

void expand_cpu(const Group& group, const Tensor& w, Tensor& dense) {
  const std::int64_t row = w.size(1) * w.size(2);
  dispatch_floating(w.dtype(), "expand_eq_weight", [&]<class T>(T) {
    cpu::repeat_permuted(group.order(), cpu::group_table(group, true), w.size(0), w.size(1), row * w.size(2),
                         row, w.data<T>(), dense.mutable_data<T>());
  });
}

void fold_cpu(const Group& group, const Tensor& dense, Tensor& w) {
  dispatch_floating(w.dtype(), "fold_eq_weight", [&]<class T>(T) {
    cpu::sum_permuted(group.order(), cpu::group_table(group, false), w.size(0), w.size(1), dense.data<T>(),
                      w.mutable_data<T>());
  });
}

constexpr Op<const Group&, const Tensor&, Tensor&> expand_op{"expand_eq_weight", expand_cpu,
                                                             GYRE_CUDA_OP(cuda::expand_eq_weight)};
constexpr Op<const Group&, const Tensor&, Tensor&> fold_op{"fold_eq_weight", fold_cpu,
                                                           GYRE_CUDA_OP(cuda::fold_eq_weight)};

}  // namespace

Tensor expand_eq_weight(const Group& group, const Tensor& w) {
  require<ShapeError>(w.rank() == 3 && w.size(2) == group.order(),
                      "expand_eq_weight: weight {} is not [D, C, {}] of group {}", w.shape(), group.order(),
                      group.name());
  Tensor dense = Tensor::empty({w.size(0) * w.size(2), w.size(1) * w.size(2)}, w.dtype(), w.device());
  expand_op(w.device(), group, w.contiguous(), dense);
  return dense;
}

Tensor fold_eq_weight(const Group& group, const Tensor& dense, std::int64_t channels_out,
                      std::int64_t channels_in) {
  require_shape(dense, {channels_out * group.order(), channels_in * group.order()}, "fold_eq_weight");
  Tensor w = Tensor::empty({channels_out, channels_in, group.order()}, dense.dtype(), dense.device());
  fold_op(w.device(), group, dense.contiguous(), w);
  return w;
}

}  // namespace gyre::kernels
