#include "kernels/cuda/layer_norm.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/layer_norm_launch.h"
#include "kernels/cuda/workspace.h"

namespace gyre::kernels::cuda {
namespace {

/// Calls f(T, H) with the types of x and of whichever of a and b is narrower, else of x again.
template <class F>
void dispatch_pair(const Tensor& x, const Tensor& a, const Tensor& b, const char* what, F f) {
  const bool a_differs = a.defined() && a.dtype() != x.dtype();
  const DType narrow = a_differs ? a.dtype() : b.defined() ? b.dtype() : x.dtype();
  dispatch(x.dtype(), what, [&]<class T>(std::type_identity<T> wide) {
    if constexpr (std::is_same_v<T, float>) {
      if (narrow == DType::f16) return f(wide, std::type_identity<prim::half_t>{});
      if (narrow == DType::bf16) return f(wide, std::type_identity<prim::bf16_t>{});
    }
    f(wide, wide);
  });
}

template <class T, class H>
Either<const T, const H> either(const Tensor& x, DType wide) {
  if (x.defined() && x.dtype() != wide) return {nullptr, data_of<H>(x)};
  return {data_of<T>(x), nullptr};
}

template <class T, class H>
Either<T, H> mutable_either(Tensor& x, DType wide) {
  if (x.dtype() != wide) return {nullptr, mutable_data_of<H>(x)};
  return {mutable_data_of<T>(x), nullptr};
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& r, const Tensor& gain, const Tensor& bias, int repeat,
                        double eps, Tensor& sum, Tensor& y, Tensor& mean, Tensor& rstd) {
  dispatch_pair(
      x, r, y, "layer_norm_forward", [&]<class T, class H>(std::type_identity<T>, std::type_identity<H>) {
        using S = SumOf<T>;
        launch_layer_norm_forward(
            LayerNormForward<T, H, S>{data_of<T>(x), either<T, H>(r, x.dtype()), data_of<S>(gain),
                                      data_of<S>(bias), repeat, static_cast<S>(eps), mutable_data_of<T>(sum),
                                      mutable_either<T, H>(y, x.dtype()), mutable_data_of<S>(mean),
                                      mutable_data_of<S>(rstd), x.size(0), x.size(1)},
            stream_of(x));
      });
}

void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                         const Tensor& grad, const Tensor& outer, int repeat, Tensor& dx, Tensor& dr,
                         Tensor& dgain, Tensor& dbias) {
  dispatch_pair(x, grad, dr, "layer_norm_backward",
                [&]<class T, class H>(std::type_identity<T>, std::type_identity<H>) {
                  using S = SumOf<T>;
                  Workspace<S> workspace(layer_norm_workspace(x.size(0), x.size(1)), x.device());
                  launch_layer_norm_backward(
                      LayerNormBackward<T, H, S>{
                          data_of<T>(x), data_of<S>(gain), data_of<S>(mean), data_of<S>(rstd),
                          either<T, H>(grad, x.dtype()), data_of<T>(outer), repeat, mutable_data_of<T>(dx),
                          mutable_data_of<H>(dr), mutable_data_of<S>(dgain), mutable_data_of<S>(dbias),
                          workspace.data(), x.size(0), x.size(1)},
                      stream_of(x));
                });
}

}  // namespace gyre::kernels::cuda
