#include "kernels/cuda/layer_norm.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/layer_norm_launch.h"
#include "kernels/cuda/workspace.h"

namespace gyre::kernels::cuda {

void layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, int repeat, double eps,
                        Tensor& y, Tensor& mean, Tensor& rstd) {
  dispatch(x.dtype(), "layer_norm_forward", [&]<class T>(std::type_identity<T>) {
    using S = SumOf<T>;
    launch_layer_norm_forward(data_of<T>(x), data_of<S>(gain), data_of<S>(bias), repeat, eps,
                              mutable_data_of<T>(y), mutable_data_of<S>(mean), mutable_data_of<S>(rstd),
                              x.size(0), x.size(1), stream_of(x));
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                         const Tensor& grad, int repeat, Tensor& dx, Tensor& dgain, Tensor& dbias) {
  dispatch(x.dtype(), "layer_norm_backward", [&]<class T>(std::type_identity<T>) {
    using S = SumOf<T>;
    Workspace<S> workspace(layer_norm_workspace(x.size(0), x.size(1)), x.device());
    launch_layer_norm_backward(data_of<T>(x), data_of<S>(gain), data_of<S>(mean), data_of<S>(rstd),
                               data_of<T>(grad), repeat, mutable_data_of<T>(dx), mutable_data_of<S>(dgain),
                               mutable_data_of<S>(dbias), workspace.data(), x.size(0), x.size(1),
                               stream_of(x));
  });
}

}  // namespace gyre::kernels::cuda
