#pragma once

#include <memory>
#include <mutex>

#include "core/tensor.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/typed_copy.h"

namespace gyre::kernels::cpu {

/// Packed copies of one weight W [M, K] (f32, dense), each with the contents it was built from.
class LinearPacks {
 public:
  /// Wᵀ for y = x Wᵀ.
  std::shared_ptr<const PackedGemm> transposed(const Tensor& w);
  /// W for dx = grad W.
  std::shared_ptr<const PackedGemm> plain(const Tensor& w);
  int builds() const;
  void clear();

 private:
  struct Slot {
    Source source;
    std::shared_ptr<const PackedGemm> pack;
  };
  std::shared_ptr<const PackedGemm> get(Slot& slot, const Tensor& w, bool transpose);

  mutable std::mutex mutex_;
  Slot transposed_, plain_;
  int builds_ = 0;
};

// The result is dense and not empty; w and dw have rank 2, rows any shape that holds N of them.

/// y [N, M] = x Wᵀ + b; x, w dense, b undefined or dense; `packs` may be null.
void linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, LinearPacks* packs, Tensor& y);
/// dx [N, K] = grad W.
void linear_grad_x(const Tensor& w, const Tensor& grad, LinearPacks* packs, Tensor& dx);
/// dw [M, K] = gradᵀ x.
void linear_grad_w(const Tensor& x, const Tensor& grad, Tensor& dw);

}  // namespace gyre::kernels::cpu
