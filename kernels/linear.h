#pragma once

#include <memory>

#include "core/tensor.h"

namespace gyre::kernels {

namespace cpu {
class LinearPacks;
}
struct LayerCopies;

/// Weights of one linear layer in the layout of the matrix kernels, rebuilt when the weight's contents
/// change. A cache, never state; several threads may use it at once.
class PackedWeight {
 public:
  PackedWeight();
  ~PackedWeight();
  PackedWeight(PackedWeight&&) noexcept;
  PackedWeight& operator=(PackedWeight&&) noexcept;

  /// How often a layout was built so far (forward and dX count separately; direct products build none).
  int builds() const;
  /// Frees the layouts; the next use builds anew.
  void clear();
  cpu::LinearPacks& cpu() const { return *cpu_; }
  /// W and b in the type of the product, where parameters are kept in another.
  LayerCopies& copies() const { return *copies_; }

 private:
  std::unique_ptr<cpu::LinearPacks> cpu_;
  std::unique_ptr<LayerCopies> copies_;
};

/// What a linear layer applies to its result: nothing, or x·Φ(x) with the exact error function.
enum class Activation { none, gelu };

/// Gradients of a layer; undefined where not asked for. For layers in f16 or bf16 those of w and b are in
/// f32: sums over all rows, which are not rounded.
struct LinearGrads {
  Tensor x, w, b;
};

/// y [N, M] = x Wᵀ + b for x [N, K], w [M, K], b [M] or undefined; f32 or f64. Throws ShapeError, DTypeError
/// or DeviceError. `cache` may be null; it serves one weight at a time.
Tensor linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, PackedWeight* cache = nullptr);

/// For grad [N, M]: x = grad W, w = gradᵀ x, b = column sums of grad. With `before` = x Wᵀ + b, which gelu
/// was applied to, `grad` is that of gelu's result.
LinearGrads linear_backward(const Tensor& x, const Tensor& w, const Tensor& grad, bool need_x, bool need_w,
                            bool need_b, PackedWeight* cache = nullptr, const Tensor& before = {});

}  // namespace gyre::kernels
