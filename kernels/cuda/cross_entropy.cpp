#include "kernels/cuda/cross_entropy.h"

#include "kernels/cuda/cross_entropy_launch.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/workspace.h"

namespace gyre::kernels::cuda {

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, double smoothing, Tensor& loss,
                           Tensor& probabilities) {
  dispatch(logits.dtype(), "cross_entropy_forward", [&]<class T>(std::type_identity<T>) {
    Workspace<SumOf<T>> losses(logits.size(0), logits.device());
    launch_cross_entropy_forward(data_of<T>(logits), labels.data<std::int64_t>(), smoothing,
                                 mutable_data_of<T>(loss), mutable_data_of<T>(probabilities), losses.data(),
                                 logits.size(0), logits.size(1), stream_of(logits));
  });
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing,
                            const Tensor& grad, Tensor& result) {
  dispatch(result.dtype(), "cross_entropy_backward", [&]<class T>(std::type_identity<T>) {
    launch_cross_entropy_backward(data_of<T>(probabilities), labels.data<std::int64_t>(), smoothing,
                                  data_of<T>(grad), mutable_data_of<T>(result), result.size(0),
                                  result.size(1), stream_of(result));
  });
}

void cross_entropy_soft_forward(const Tensor& logits, const Tensor& targets, Tensor& loss,
                                Tensor& probabilities) {
  dispatch(logits.dtype(), "cross_entropy_soft_forward", [&]<class T>(std::type_identity<T>) {
    Workspace<SumOf<T>> losses(logits.size(0), logits.device());
    launch_cross_entropy_soft_forward(data_of<T>(logits), data_of<T>(targets), mutable_data_of<T>(loss),
                                      mutable_data_of<T>(probabilities), losses.data(), logits.size(0),
                                      logits.size(1), stream_of(logits));
  });
}

void cross_entropy_soft_backward(const Tensor& probabilities, const Tensor& targets, const Tensor& grad,
                                 Tensor& result) {
  dispatch(result.dtype(), "cross_entropy_soft_backward", [&]<class T>(std::type_identity<T>) {
    launch_cross_entropy_soft_backward(data_of<T>(probabilities), data_of<T>(targets), data_of<T>(grad),
                                       mutable_data_of<T>(result), result.size(0), result.size(1),
                                       stream_of(result));
  });
}

}  // namespace gyre::kernels::cuda
