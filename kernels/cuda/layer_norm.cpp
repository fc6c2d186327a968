#include "kernels/cuda/layer_norm.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/layer_norm_launch.h"
#include "kernels/cuda/workspace.h"

namespace gyre::kernels::cuda {

void layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat, double eps,
                        Tensor& y, Tensor& mean, Tensor& rstd) {
  dispatch(x.dtype(), "layer_norm_forward", [&]<class T>(std::type_identity<T>) {
    launch_layer_norm_forward(data_of<T>(x), data_of<T>(gain), data_of<T>(bias), repeat, eps,
                              mutable_data_of<T>(y), mutable_data_of<SumOf<T>>(mean),
                              mutable_data_of<SumOf<T>>(rstd), x.size(0), x.size(1), stream_of(x));
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                         const Tensor& grad, int repeat, Tensor& dx, Tensor& dgain, Tensor& dbias) {
  dispatch(x.dtype(), "layer_norm_backward", [&]<class T>(std::type_identity<T>) {
    Workspace<SumOf<T>> workspace(layer_norm_workspace(x.size(0), x.size(1)), x.device());
    launch_layer_norm_backward(data_of<T>(x), data_of<T>(gain), data_of<SumOf<T>>(mean),
                               data_of<SumOf<T>>(rstd), data_of<T>(grad), repeat, mutable_data_of<T>(dx),
                               mutable_data_of<T>(dgain), mutable_data_of<T>(dbias), workspace.data(),
                               x.size(0), x.size(1), stream_of(x));
  });
}

}  // namespace gyre::kernels::cuda
