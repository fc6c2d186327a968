#include "kernels/linear.h"

#include <array>

#include "kernels/bias_gelu.h"
#include "kernels/cpu/linear.h"
#include "kernels/cuda/linear.h"
#include "kernels/elementwise.h"
#include "kernels/op.h"
#include "kernels/reduce.h"
#include "kernels/typed_copy.h"
#include "kernels/types.h"

namespace gyre::kernels {
namespace {

constexpr Op<const Tensor&, const Tensor&, const Tensor&, cpu::LinearPacks*, Tensor&> forward_op{
    "linear", cpu::linear_forward, GYRE_CUDA_OP(cuda::linear_forward)};
constexpr Op<const Tensor&, const Tensor&, cpu::LinearPacks*, Tensor&> grad_x_op{
    "linear_backward", cpu::linear_grad_x, GYRE_CUDA_OP(cuda::linear_grad_x)};
constexpr Op<const Tensor&, const Tensor&, Tensor&> grad_w_op{"linear_backward", cpu::linear_grad_w,
                                                              GYRE_CUDA_OP(cuda::linear_grad_w)};

// Texts are made only where they are thrown: small layers would feel them.
void require_rank(const Tensor& x, int rank, const char* name, const char* what) {
  if (x.rank() == rank) return;
  throw ShapeError(fmt::format("{}: {} has shape {}, not rank {}", what, name, x.shape(), rank));
}

void require_operands(const Tensor& x, const Tensor& w, const char* what) {
  require_same_device(x, w, what);
  require_same_dtype(x, w, what);
  require_computable(x, what);
  require_rank(x, 2, "x", what);
  require_rank(w, 2, "w", what);
  if (x.size(1) == w.size(1)) return;
  throw ShapeError(fmt::format("{}: x {} and w {} differ in their last size", what, x.shape(), w.shape()));
}

/// A copy of a strided weight is new each time: nothing to remember.
cpu::LinearPacks* packs_for(const Tensor& w, PackedWeight* cache) {
  return cache != nullptr && w.is_contiguous() ? &cache->cpu() : nullptr;
}

}  // namespace

PackedWeight::PackedWeight()
    : cpu_(std::make_unique<cpu::LinearPacks>()), copies_(std::make_unique<LayerCopies>()) {}
PackedWeight::~PackedWeight() = default;
PackedWeight::PackedWeight(PackedWeight&&) noexcept = default;
PackedWeight& PackedWeight::operator=(PackedWeight&&) noexcept = default;
int PackedWeight::builds() const { return cpu_->builds(); }
void PackedWeight::clear() {
  cpu_->clear();
  copies_->clear();
}

Tensor linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, PackedWeight* cache) {
  const ProfileScope scope("linear_forward");
  require_operands(x, w, "linear");
  if (b.defined()) {
    require_same_device(x, b, "linear");
    require_same_dtype(x, b, "linear");
    require_shape(b, {w.size(0)}, "linear bias");
  }
  Tensor y = Tensor::empty({x.size(0), w.size(0)}, x.dtype(), x.device());
  if (y.numel() == 0) return y;
  forward_op(x.device(), x.contiguous(), w.contiguous(), b.defined() ? b.contiguous() : b,
             packs_for(w, cache), y);
  return y;
}

LinearGrads linear_backward(const Tensor& x, const Tensor& w, const Tensor& grad, bool need_x, bool need_w,
                            bool need_b, PackedWeight* cache, const Tensor& before) {
  const ProfileScope scope("linear_backward");
  require_operands(x, w, "linear_backward");
  require_same_device(x, grad, "linear_backward");
  require_same_dtype(x, grad, "linear_backward");
  require_shape(grad, {x.size(0), w.size(0)}, "linear_backward gradient");
  LinearGrads result;
  Tensor rows = grad.contiguous();
  if (before.defined() && need_b) {
    BiasGeluGrads grads = bias_gelu_backward(before, rows);
    rows = std::move(grads.x);
    result.b = std::move(grads.bias);
  } else if (before.defined()) {
    rows = unary_backward(UnaryOp::gelu, before, Tensor(), rows);
  } else if (need_b) {
    result.b = wide_sum(rows, std::array{0}, false);
  }
  if (need_x) {
    result.x = Tensor::empty(x.shape(), x.dtype(), x.device());
    if (result.x.numel() > 0) grad_x_op(x.device(), w.contiguous(), rows, packs_for(w, cache), result.x);
  }
  if (need_w) {
    result.w = Tensor::empty(w.shape(), wide_type(w.dtype()), w.device());
    if (result.w.numel() > 0) grad_w_op(x.device(), x.contiguous(), rows, result.w);
  }
  return result;
}

}  // namespace gyre::kernels
