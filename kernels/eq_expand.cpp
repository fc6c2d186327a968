#include <string_view>

#include "kernels/cpu/group_permute.h"
#include "kernels/eq_linear.h"

namespace gyre::kernels {
namespace {

/// (t, s) → t·s, or t⁻¹·s.
cpu::GroupTable table_of(const Group& group, bool inverse) {
  cpu::GroupTable table{};
  for (int t = 0; t < group.order(); ++t)
    for (int s = 0; s < group.order(); ++s) table[t][s] = group.mul(inverse ? group.inv(t) : t, s);
  return table;
}

/// [N, C, T] → [N·T, C·T].
Tensor repeat_rows(const Group& group, const Tensor& x, bool inverse, std::string_view what) {
  require<ShapeError>(x.rank() == 3 && x.size(2) == group.order(), "{}: {} is not [N, C, {}] of group {}",
                      what, x.shape(), group.order(), group.name());
  const Tensor rows = x.contiguous();
  Tensor repeated = Tensor::empty({x.size(0) * x.size(2), x.size(1) * x.size(2)}, x.dtype());
  dispatch_floating(x.dtype(), what, [&]<class T>(T) {
    cpu::repeat_permuted(group.order(), table_of(group, inverse), x.size(0), x.size(1), rows.data<T>(),
                         repeated.mutable_data<T>());
  });
  return repeated;
}

}  // namespace

Tensor expand_eq_weight(const Group& group, const Tensor& w) {
  return repeat_rows(group, w, true, "expand_eq_weight");
}

Tensor permute_eq_rows(const Group& group, const Tensor& x) {
  return repeat_rows(group, x, false, "permute_eq_rows");
}

Tensor fold_eq_weight(const Group& group, const Tensor& dense, std::int64_t channels_out,
                      std::int64_t channels_in) {
  require_shape(dense, {channels_out * group.order(), channels_in * group.order()}, "fold_eq_weight");
  const Tensor matrix = dense.contiguous();
  Tensor w = Tensor::empty({channels_out, channels_in, group.order()}, dense.dtype());
  dispatch_floating(dense.dtype(), "fold_eq_weight", [&]<class T>(T) {
    cpu::sum_permuted(group.order(), table_of(group, false), channels_out, channels_in, matrix.data<T>(),
                      w.mutable_data<T>());
  });
  return w;
}

}  // namespace gyre::kernels
