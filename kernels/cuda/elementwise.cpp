#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/elementwise_launch.h"

namespace gyre::kernels::cuda {

void binary(BinaryOp op, const Tensor& a, const Tensor& b, Tensor& y) {
  const BroadcastLoop loop = merge_dimensions(y.shape(), a.strides(), b.strides());
  dispatch(y.dtype(), "binary", [&]<class T>(std::type_identity<T>) {
    launch_binary(op, loop, data_of<T>(a), data_of<T>(b), mutable_data_of<T>(y), stream_of(y));
  });
}

void unary(UnaryOp op, const Tensor& x, Tensor& y) {
  dispatch(x.dtype(), "unary", [&]<class T>(std::type_identity<T>) {
    launch_unary(op, data_of<T>(x), mutable_data_of<T>(y), x.numel(), stream_of(x));
  });
}

void unary_backward(UnaryOp op, const Tensor& saved, const Tensor& grad, Tensor& result) {
  dispatch(grad.dtype(), "unary_backward", [&]<class T>(std::type_identity<T>) {
    launch_unary_backward(op, data_of<T>(saved), data_of<T>(grad), mutable_data_of<T>(result), grad.numel(),
                          stream_of(grad));
  });
}

void affine(const Tensor& x, double scale, double shift, Tensor& y) {
  dispatch(x.dtype(), "affine", [&]<class T>(std::type_identity<T>) {
    launch_affine(data_of<T>(x), scale, shift, mutable_data_of<T>(y), x.numel(), stream_of(x));
  });
}

void add_into(Tensor& accumulator, const Tensor& x, double scale) {
  dispatch(x.dtype(), "add_into", [&]<class T>(std::type_identity<T>) {
    const T* from = data_of<T>(x);
    launch_add_into(mutable_data_of<T>(accumulator), from, scale, x.numel(), stream_of(x));
  });
}

}  // namespace gyre::kernels::cuda
