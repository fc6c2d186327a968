#include "kernels/cuda/gather.h"

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/gather_launch.h"
#include "kernels/cuda/index_table.h"

namespace gyre::kernels::cuda {

void gather(const Tensor& x, const Tensor& index, Tensor& y) {
  launch_gather(x.raw_data(), index.data<std::int64_t>(), y.raw_mutable_data(), y.size(0), x.size(1),
                y.size(1), static_cast<int>(size_of(x.dtype())), stream_of(x));
}

void gather_backward(const Tensor& grad, const Tensor& index, Tensor& result) {
  const std::int64_t m = result.size(1), k = grad.size(1);
  if (k == 0) return result.zero_();
  const IndexTable table = index_table(index, m);
  dispatch(grad.dtype(), "gather_backward", [&]<class T>(std::type_identity<T>) {
    launch_gather_backward(data_of<T>(grad), table.starts.data<std::int64_t>(),
                           table.order.data<std::int64_t>(), mutable_data_of<T>(result), result.size(0), m, k,
                           stream_of(grad));
  });
}

void gather_rows(const Tensor& x, const Tensor& index, Tensor& y) {
  const std::int64_t bytes = y.size(2) * static_cast<std::int64_t>(size_of(x.dtype()));
  launch_row_copy({x.raw_data(), y.raw_mutable_data(), index.data<std::int64_t>(), y.size(0), y.size(1),
                   x.size(1), bytes, bytes, bytes},
                  stream_of(x));
}

void concat(std::span<const Tensor> parts, std::int64_t outer, Tensor& y) {
  const auto element = static_cast<std::int64_t>(size_of(y.dtype()));
  const std::int64_t row = y.numel() / outer * element;
  auto* to = static_cast<std::byte*>(y.raw_mutable_data());
  for (const Tensor& part : parts) {
    const std::int64_t bytes = part.numel() / outer * element;
    launch_row_copy({part.raw_data(), to, nullptr, 1, outer, outer, bytes, bytes, row}, stream_of(y));
    to += bytes;
  }
}

}  // namespace gyre::kernels::cuda
