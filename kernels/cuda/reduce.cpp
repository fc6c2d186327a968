#include "kernels/cuda/reduce.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/reduce_launch.h"
#include "kernels/cuda/workspace.h"

namespace gyre::kernels::cuda {

void sum_middle(const Tensor& x, std::int64_t a, std::int64_t r, std::int64_t k, Tensor& y) {
  if (r == 0) return y.zero_();
  dispatch(x.dtype(), "sum", [&]<class T>(std::type_identity<T>) {
    Workspace<SumOf<T>> workspace(sum_workspace(a, r, k), x.device());
    launch_sum(data_of<T>(x), mutable_data_of<SumOf<T>>(y), a, r, k, workspace.data(), stream_of(x));
  });
}

void argmax_rows(const Tensor& x, std::vector<std::int64_t>& result) {
  Tensor index = Tensor::empty({x.size(0)}, DType::i64, x.device());
  dispatch(x.dtype(), "argmax_rows", [&]<class T>(std::type_identity<T>) {
    launch_argmax(data_of<T>(x), index.mutable_data<std::int64_t>(), x.size(0), x.size(1), stream_of(x));
  });
  const Tensor host = index.to(Device::cpu());
  const auto* values = host.data<std::int64_t>();
  result.assign(values, values + host.numel());
}

}  // namespace gyre::kernels::cuda
