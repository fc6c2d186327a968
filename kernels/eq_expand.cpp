#include "kernels/cpu/group_permute.h"
#include "kernels/eq_linear.h"

namespace gyre::kernels {

Tensor expand_eq_weight(const Group& group, const Tensor& w) {
  require<ShapeError>(w.rank() == 3 && w.size(2) == group.order(),
                      "expand_eq_weight: weight {} is not [D, C, {}] of group {}", w.shape(), group.order(),
                      group.name());
  const Tensor weight = w.contiguous();
  const std::int64_t d = w.size(0), row = w.size(1) * w.size(2);
  Tensor dense = Tensor::empty({d * w.size(2), row}, w.dtype());
  dispatch_floating(w.dtype(), "expand_eq_weight", [&]<class T>(T) {
    cpu::repeat_permuted(group.order(), cpu::group_table(group, true), d, w.size(1), row * w.size(2), row,
                         weight.data<T>(), dense.mutable_data<T>());
  });
  return dense;
}

Tensor fold_eq_weight(const Group& group, const Tensor& dense, std::int64_t channels_out,
                      std::int64_t channels_in) {
  require_shape(dense, {channels_out * group.order(), channels_in * group.order()}, "fold_eq_weight");
  const Tensor matrix = dense.contiguous();
  Tensor w = Tensor::empty({channels_out, channels_in, group.order()}, dense.dtype());
  dispatch_floating(dense.dtype(), "fold_eq_weight", [&]<class T>(T) {
    cpu::sum_permuted(group.order(), cpu::group_table(group, false), channels_out, channels_in,
                      matrix.data<T>(), w.mutable_data<T>());
  });
  return w;
}

}  // namespace gyre::kernels
