#include "kernels/cuda/softmax.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/softmax_launch.h"

namespace gyre::kernels::cuda {

void softmax_forward(const Tensor& x, Tensor& y) {
  const std::int64_t n = x.size(-1);
  dispatch(x.dtype(), "softmax_forward", [&]<class T>(std::type_identity<T>) {
    launch_softmax_forward(data_of<T>(x), mutable_data_of<T>(y), x.numel() / n, n, stream_of(x));
  });
}

void softmax_backward(const Tensor& y, const Tensor& grad, Tensor& result) {
  const std::int64_t n = y.size(-1);
  dispatch(y.dtype(), "softmax_backward", [&]<class T>(std::type_identity<T>) {
    launch_softmax_backward(data_of<T>(y), data_of<T>(grad), mutable_data_of<T>(result), y.numel() / n, n,
                            stream_of(y));
  });
}

}  // namespace gyre::kernels::cuda
