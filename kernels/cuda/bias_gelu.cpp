#include "kernels/cuda/bias_gelu.h"

#include <array>

#include "kernels/bias_gelu.h"
#include "kernels/cuda/bias_gelu_launch.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/workspace.h"
#include "kernels/reduce.h"
#include "kernels/types.h"

namespace gyre::kernels::cuda {

void bias_gelu_backward(const Tensor& before, const Tensor& grad, int repeat, BiasGeluGrads& result) {
  const std::int64_t rows = before.size(0), n = before.size(1);
  result.x = Tensor::empty(before.shape(), before.dtype(), before.device());
  Tensor parts = Tensor::empty({bias_gelu_parts(rows), n}, wide_type(before.dtype()), before.device());
  dispatch(before.dtype(), "bias_gelu_backward", [&]<class T>(std::type_identity<T>) {
    launch_bias_gelu_backward(data_of<T>(before), data_of<T>(grad), mutable_data_of<T>(result.x),
                              mutable_data_of<SumOf<T>>(parts), rows, n, stream_of(before));
  });
  result.bias = sum(parts, std::array{0}, false);
  if (repeat > 1) result.bias = sum(result.bias.reshape({n / repeat, repeat}), std::array{1}, false);
}

}  // namespace gyre::kernels::cuda
