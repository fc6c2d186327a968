#include "kernels/eq_linear.h"

#include <array>
#include <numeric>
#include <optional>

#include "core/parallel.h"
#include "kernels/cpu/eq_linear.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cuda/eq_linear.h"
#include "kernels/elementwise.h"
#include "kernels/eq_planes.h"
#include "kernels/op.h"
#include "kernels/reduce.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr std::array<std::string_view, 5> backend_names{"auto", "flash", "naive", "fused", "packed"};

/// The product form asked for; `products` = 0 takes the fewest, but the plain one in 16 bits, where the
/// differences of the fewest cost digits.
const BilinearForm& form_of(const Group& group, int products, DType dtype) {
  if (products == 0 && size_of(dtype) == 2) return group.plain_form();
  if (products == 0 || products == group.fewest_form().products()) return group.fewest_form();
  require<ValueError>(products == group.plain_form().products(),
                      "products {}: group {} has forms of {} and {} products", products, group.name(),
                      group.fewest_form().products(), group.plain_form().products());
  return group.plain_form();
}

/// The same for the same shape and thread count, so that a run always takes the same kernels.
EqImplementation choose(const EqShape& shape, EqBackend backend, DType dtype) {
  if (shape.channels_in == 0 || shape.channels_out == 0) return EqImplementation::naive;  // no planes
  if (backend == EqBackend::naive) return EqImplementation::naive;
  if (dtype == DType::f64) {
    return backend == EqBackend::automatic && shape.group.order() == 1 ? EqImplementation::naive
                                                                       : EqImplementation::packed;
  }
  if (backend == EqBackend::fused) return EqImplementation::fused;
  if (backend == EqBackend::packed) return EqImplementation::packed;
  return eq_choice(shape, backend == EqBackend::flash);
}

/// Sums of grad [N, D, T] over N and T, the long one first: over whole rows.
Tensor bias_gradient(const Tensor& grad) {
  const std::int64_t n = grad.size(0), d = grad.size(1), order = grad.size(2), row = d * order;
  Tensor b = Tensor::empty({d}, grad.dtype());
  dispatch_floating(grad.dtype(), "eq_linear", [&]<class T>(T) {
    T* to = b.mutable_data<T>();
    const auto add_elements = [&](const T* columns) {
      for (std::int64_t i = 0; i < d; ++i, columns += order)
        to[i] = std::accumulate(columns, columns + order, T{});
    };
    constexpr std::int64_t few = 64;  // columns that one thread adds faster than a call costs
    if (row > few || n > few)
      return add_elements(sum(grad.reshape({n, row}), std::array{0}, false).data<T>());
    std::array<T, few> columns{};
    const T* from = grad.data<T>();
    for (std::int64_t i = 0; i < n; ++i, from += row)
      for (std::int64_t k = 0; k < row; ++k) columns[k] += from[k];
    add_elements(columns.data());
  });
  return b;
}

/// A dense tensor: the given one itself, where it is.
class Dense {
 public:
  explicit Dense(const Tensor& x) : given_(x) {
    if (x.defined() && !x.is_contiguous()) copy_ = x.contiguous();
  }
  operator const Tensor&() const { return copy_ ? *copy_ : given_; }

 private:
  const Tensor& given_;
  std::optional<Tensor> copy_;
};

/// Whether y is activated in a pass of its own: lanes without a channel would pass through the activation
/// too. One full vector is as fast either way, and faster so for quarter turns: their planes stay in registers.
bool activates_apart(std::int64_t channels_out) {
  const std::int64_t lanes = cpu::flash_lanes(), left = channels_out % lanes;
  return channels_out <= lanes || (left > 0 && 2 * (lanes - left) >= channels_out);
}

void forward_cpu(const EqForward& call, Tensor& y) {
  const BilinearForm& form = call.form;
  const EqShape shape{call.group,     EqDirection::forward, call.x.size(0),
                      call.w.size(1), call.w.size(0),       num_threads()};
  switch (choose(shape, call.backend, call.x.dtype())) {
    case EqImplementation::naive:
      cpu::naive_eq_linear_forward(call.group, call.x, call.w, call.b, call.cache, y);
      break;
    case EqImplementation::packed:
      cpu::packed_eq_linear_forward(form, call.x, call.w, call.b, call.cache, y);
      break;
    case EqImplementation::fused:
      if (call.activation == Activation::none || !activates_apart(call.w.size(0)))
        return cpu::flash_eq_linear_forward(form, call.x, call.w, call.b, call.cache, call.activation,
                                            call.pre_activation, y);
      cpu::flash_eq_linear_forward(form, call.x, call.w, call.b, call.cache, Activation::none, nullptr, y);
      break;
  }
  if (call.pre_activation) *call.pre_activation = y;
  if (call.activation == Activation::gelu) y = unary(UnaryOp::gelu, y);
}

void backward_cpu(const EqBackward& call, LinearGrads& grads) {
  const auto& [group, form, backend, x, w, given, need_x, need_w, need_b, cache, before] = call;
  const Tensor grad = before.defined() ? unary_backward(UnaryOp::gelu, before, Tensor(), given) : given;
  const EqShape shape{group, EqDirection::backward, x.size(0), w.size(1), w.size(0), num_threads()};
  switch (choose(shape, backend, x.dtype())) {
    case EqImplementation::naive:
      grads = cpu::naive_eq_linear_backward(group, x, w, grad, need_x, need_w, cache);
      break;
    case EqImplementation::packed:
      grads = cpu::packed_eq_linear_backward(form, x, w, grad, need_x, need_w, cache);
      break;
    case EqImplementation::fused:
      grads = cpu::flash_eq_linear_backward(group, form, x, w, grad, need_x, need_w, need_b, cache);
      break;
  }
  if (need_b && !grads.b.defined()) grads.b = bias_gradient(grad);
}

const Op<const EqForward&, Tensor&> eq_linear_forward_op{"eq_linear_forward", forward_cpu,
                                                         GYRE_CUDA_OP(cuda::eq_linear_forward)};
const Op<const EqBackward&, LinearGrads&> eq_linear_backward_op{"eq_linear_backward", backward_cpu,
                                                                GYRE_CUDA_OP(cuda::eq_linear_backward)};

void check(const Group& group, const Tensor& x, const Tensor& w) {
  require_same_device(x, w, "eq_linear");
  require_same_dtype(x, w, "eq_linear");
  require_computable(x, "eq_linear");
  const std::int64_t t = group.order();
  require<ShapeError>(w.rank() == 3 && w.size(2) == t, "eq_linear: weight {} is not [D, C, {}] of group {}",
                      w.shape(), t, group.name());
  require<ShapeError>(x.rank() == 3 && x.size(1) == w.size(1) && x.size(2) == t,
                      "eq_linear: input {} does not fit weight {}: expected [N, {}, {}]", x.shape(),
                      w.shape(), w.size(1), t);
}

}  // namespace

EqBackend parse_eq_backend(std::string_view name) {
  for (std::size_t i = 0; i < backend_names.size(); ++i)
    if (name == backend_names[i]) return static_cast<EqBackend>(i);
  throw ValueError(fmt::format("backend '{}': expected auto, flash, naive, fused or packed", name));
}

std::string_view name_of(EqBackend backend) { return backend_names[static_cast<std::size_t>(backend)]; }

Tensor eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                         const EqLinearOptions& options, EqPlanes* cache, Activation activation,
                         Tensor* pre_activation) {
  const ProfileScope scope("eq_linear_forward");
  check(group, x, w);
  if (b.defined()) {
    require_same_device(x, b, "eq_linear bias");
    require_same_dtype(x, b, "eq_linear bias");
    require_shape(b, {w.size(0)}, "eq_linear bias");
  }
  const BilinearForm& form = form_of(group, options.products, x.dtype());
  std::optional<EqPlanes> temporary;
  Tensor y = Tensor::empty({x.size(0), w.size(0), group.order()}, x.dtype(), x.device());
  const Dense input(x), weight(w), bias(b);
  eq_linear_forward_op(x.device(),
                       EqForward{group, form, options.backend, input, weight, bias,
                                 cache ? *cache : temporary.emplace(), activation, pre_activation},
                       y);
  return y;
}

LinearGrads eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                               bool need_x, bool need_w, bool need_b, const EqLinearOptions& options,
                               EqPlanes* cache, const Tensor& before) {
  const ProfileScope scope("eq_linear_backward");
  check(group, x, w);
  require_same_device(x, grad, "eq_linear gradient");
  require_same_dtype(x, grad, "eq_linear gradient");
  require_shape(grad, {x.size(0), w.size(0), group.order()}, "eq_linear gradient");
  if (before.defined()) {
    require_same_device(grad, before, "eq_linear gradient");
    require_same_dtype(grad, before, "eq_linear gradient");
    require_shape(before, grad.shape(), "eq_linear gradient");
  }
  const BilinearForm& form = form_of(group, options.products, x.dtype());
  std::optional<EqPlanes> temporary;
  LinearGrads grads;
  const Dense input(x), weight(w), dense_grad(grad), dense_before(before);
  eq_linear_backward_op(x.device(),
                        EqBackward{group, form, options.backend, input, weight, dense_grad, need_x, need_w,
                                   need_b, cache ? *cache : temporary.emplace(), dense_before},
                        grads);
  return grads;
}

std::string eq_linear_kernel(const Group& group, const EqLinearOptions& options, DType dtype,
                             std::int64_t rows, std::int64_t channels_in, std::int64_t channels_out,
                             EqDirection direction, Device device) {
  const int products = form_of(group, options.products, dtype).products();
  const EqShape shape{group, direction, rows, channels_in, channels_out, num_threads()};
#ifdef GYRE_WITH_CUDA
  if (device.is_cuda()) {
    const bool packed = cuda::eq_linear_choice(shape, options.backend) == EqImplementation::packed;
    return packed ? fmt::format("flash{}_cublas", products) : "naive_cublas";
  }
#endif
  require<DeviceError>(device.is_cpu(), "eq_linear has no CUDA implementation");
  const std::string_view library = dtype == DType::f64 ? "eigen" : cpu::dense_library();
  switch (choose(shape, options.backend, dtype)) {
    case EqImplementation::naive: return fmt::format("naive_{}", library);
    case EqImplementation::packed: return fmt::format("flash{}_{}", products, library);
    case EqImplementation::fused: return fmt::format("flash{}_{}", products, cpu::flash_target());
  }
  return {};
}

}  // namespace gyre::kernels
