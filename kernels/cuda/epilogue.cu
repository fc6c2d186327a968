#include "kernels/cuda/epilogue_launch.h"

#include "core/cuda/prim.cuh"
#include "kernels/cuda/device.cuh"

namespace gyre::kernels::cuda {
namespace {

constexpr int threads = 256;
constexpr std::int64_t most_packs = std::int64_t{1} << 30;  // of one launch

template <EpilogueActivation activation, class C>
GYRE_DEVICE C activate(C x) {
  if constexpr (activation == EpilogueActivation::gelu) return x * normal_cdf(x);
  if constexpr (activation == EpilogueActivation::gelu_tanh)
    return C(0.5) * x * (C(1) + tanh_of(C(0.7978845608028654) * (x + C(0.044715) * x * x * x)));
  return x;
}

/// One thread per `width` neighbours of a row.
template <class T, int width, EpilogueActivation activation>
GYRE_KERNEL(threads)
epilogue_kernel(std::uint32_t count, std::uint32_t per_row, std::int64_t stride, const T* x, const T* bias,
                T* before, T* y) {
  const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t row = i / per_row, column = static_cast<std::int64_t>(i % per_row) * width;
  const std::int64_t at = row * stride + column;
  Wide<T> values[width];
  load(x + at, values);
  if (bias != nullptr) {
    Wide<T> add[width];
    load(bias + column, add);
    GYRE_UNROLL
    for (int k = 0; k < width; ++k) values[k] += add[k];
  }
  if (before != nullptr) store(values, before + at);
  GYRE_UNROLL
  for (int k = 0; k < width; ++k) values[k] = activate<activation>(values[k]);
  store(values, y + at);
}

template <class T, int width, EpilogueActivation activation>
void launch(std::int64_t rows, std::int64_t n, std::int64_t stride, const T* x, const T* bias, T* before,
            T* y, void* stream) {
  const std::int64_t per_row = n / width, part = most_packs / per_row + 1;
  for (std::int64_t first = 0; first < rows; first += part) {
    const std::int64_t count = (rows - first < part ? rows - first : part) * per_row;
    GYRE_LAUNCH((epilogue_kernel<T, width, activation>), prim::Grid{prim::blocks(count, threads)}, threads, 0,
                stream, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(per_row), stride,
                x + first * stride, bias, before == nullptr ? nullptr : before + first * stride,
                y + first * stride);
  }
}

template <class T, EpilogueActivation activation>
void launch_widest(std::int64_t rows, std::int64_t n, std::int64_t stride, const T* x, const T* bias,
                   T* before, T* y, void* stream) {
  if (rows_take_packs<T>(n, x, bias, before, y) && stride % pack_size<T> == 0)
    launch<T, pack_size<T>, activation>(rows, n, stride, x, bias, before, y, stream);
  else
    launch<T, 1, activation>(rows, n, stride, x, bias, before, y, stream);
}

}  // namespace

template <class T>
void launch_epilogue(EpilogueActivation activation, std::int64_t rows, std::int64_t n, std::int64_t stride,
                     const T* x, const T* bias, T* before, T* y, void* stream) {
  if (rows == 0 || n == 0) return;
  switch (activation) {
    case EpilogueActivation::none:
      return launch_widest<T, EpilogueActivation::none>(rows, n, stride, x, bias, before, y, stream);
    case EpilogueActivation::gelu:
      return launch_widest<T, EpilogueActivation::gelu>(rows, n, stride, x, bias, before, y, stream);
    case EpilogueActivation::gelu_tanh:
      return launch_widest<T, EpilogueActivation::gelu_tanh>(rows, n, stride, x, bias, before, y, stream);
  }
}

#define GYRE_EPILOGUE(T)                                                                                \
  template void launch_epilogue(EpilogueActivation, std::int64_t, std::int64_t, std::int64_t, const T*, \
                                const T*, T*, T*, void*)
GYRE_EPILOGUE(double);
GYRE_EPILOGUE(float);
GYRE_EPILOGUE(prim::half_t);
GYRE_EPILOGUE(prim::bf16_t);

}  // namespace gyre::kernels::cuda
