#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/workspace.h"
#include "kernels/types.h"

namespace gyre::kernels::cuda {
namespace {

template <class T>
AttentionInput<T, SumOf<T>> input_of(const Tensor& qkv, const ScoreBias& added) {
  require<DeviceError>(qkv.size(4) <= max_head_width(qkv.dtype() == DType::f64),
                       "attention on CUDA takes heads of up to {} channels in {}, not {}",
                       max_head_width(qkv.dtype() == DType::f64), qkv.dtype(), qkv.size(4));
  return {qkv.size(0),
          qkv.size(1),
          qkv.size(3),
          qkv.size(4),
          data_of<T>(qkv),
          data_of<SumOf<T>>(added.bias),
          data_of<SumOf<T>>(added.mask),
          added.mask.defined() ? added.mask.size(0) : 1};
}

}  // namespace

void attention_forward(const Tensor& qkv, const ScoreBias& added, bool keep, AttentionResult& result) {
  if (keep)
    result.logarithms =
        Tensor::empty({qkv.size(0), qkv.size(3), qkv.size(1)}, wide_type(qkv.dtype()), qkv.device());
  dispatch(qkv.dtype(), "attention_forward", [&]<class T>(std::type_identity<T>) {
    launch_attention_forward(input_of<T>(qkv, added), mutable_data_of<T>(result.y),
                             mutable_data_of<SumOf<T>>(result.logarithms), stream_of(qkv));
  });
}

void attention_backward(const Tensor& qkv, const AttentionResult& forward, const ScoreBias& added,
                        const Tensor& grad, Tensor& result, Tensor& bias_gradient) {
  dispatch(qkv.dtype(), "attention_backward", [&]<class T>(std::type_identity<T>) {
    using S = SumOf<T>;
    Workspace<S> workspace(
        attention_workspace(qkv.size(0), qkv.size(1), qkv.size(3), bias_gradient.defined()), qkv.device());
    launch_attention_backward<T, S>(input_of<T>(qkv, added),
                                    {data_of<T>(forward.y), data_of<S>(forward.logarithms), data_of<T>(grad),
                                     mutable_data_of<T>(result), mutable_data_of<S>(bias_gradient)},
                                    workspace.data(), stream_of(qkv));
  });
}

}  // namespace gyre::kernels::cuda
