#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/group.h"
#include "core/tensor.h"
#include "kernels/eq_choice.h"
#include "kernels/linear.h"

namespace gyre::kernels {

/// `flash`: few small products in the Fourier domain of the group; `naive`: one product with the expanded
/// dense matrix; `automatic`: whichever is faster for the sizes at hand (eq_choice.h). `fused` and `packed`
/// name one of the two flash implementations; f64 and CUDA have only the latter. All compute the same layer
/// from the same W.
enum class EqBackend { automatic, flash, naive, fused, packed };
/// "auto", "flash", "naive", "fused" or "packed"; throws ValueError for any other text.
EqBackend parse_eq_backend(std::string_view name);
std::string_view name_of(EqBackend backend);

struct EqLinearOptions {
  EqBackend backend = EqBackend::automatic;
  /// Products of the flash form: 0 for the fewest (in f16 and bf16 the plain count), or the plain or fewest
  /// count of the group (c4: 6 or 5).
  int products = 0;
};

/// What is derived from W: weight planes (flash) and the packed dense expansion (naive). A cache keyed by the
/// version of W, never state: it rebuilds on the first use after W changed in any way.
class EqPlanes {
 public:
  EqPlanes();
  ~EqPlanes();
  EqPlanes(const EqPlanes&) = delete;
  EqPlanes& operator=(const EqPlanes&) = delete;

  /// How often anything was rebuilt from W: at most once per version of W and backend.
  int rebuilds() const;
  /// Frees the contents.
  void clear();

  /// W and b in the type of the product, where parameters are kept in another.
  LayerCopies& copies() const;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// Y[n,d,t] = Σ_c Σ_s x[n,c,s] · w[d,c,t⁻¹s] + b[d] (Flash EQ-Linear paper, docs/math.md section 2).
/// x [N, C, T], w [D, C, T], b [D] or undefined → [N, D, T]; f32 or f64, on CUDA also f16 or bf16. `cache`
/// may be null. Throws ShapeError, DTypeError, DeviceError, or ValueError for a product count that the group
/// does not have.
/// `activation` is applied to the result; `pre_activation`, if given, receives Y as it was before, which the
/// gradient needs (the result itself without an activation).
Tensor eq_linear_forward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& b,
                         const EqLinearOptions& options = {}, EqPlanes* cache = nullptr,
                         Activation activation = Activation::none, Tensor* pre_activation = nullptr);

/// Gradients for grad [N, D, T] of Y or, with `before` = Y, of gelu(Y), in the types of LinearGrads;
/// undefined where not asked for.
LinearGrads eq_linear_backward(const Group& group, const Tensor& x, const Tensor& w, const Tensor& grad,
                               bool need_x, bool need_w, bool need_b, const EqLinearOptions& options = {},
                               EqPlanes* cache = nullptr, const Tensor& before = {});

/// Name of the kernel that runs for these sizes and num_threads(): "flash5_avx2" (fused, the instruction
/// set), "flash5_onednn" (packed), "flash5_eigen" (packed, f64), "naive_onednn", "flash5_cublas" …
std::string eq_linear_kernel(const Group& group, const EqLinearOptions& options, DType dtype,
                             std::int64_t rows, std::int64_t channels_in, std::int64_t channels_out,
                             EqDirection direction = EqDirection::forward, Device device = {});

/// The dense [D·T, C·T] matrix of the layer: row d·T + t, column c·T + s. ShapeError unless w is [D, C, T].
Tensor expand_eq_weight(const Group& group, const Tensor& w);
/// Adjoint of expand_eq_weight: a gradient [D·T, C·T] folded to [D, C, T].
Tensor fold_eq_weight(const Group& group, const Tensor& dense, std::int64_t channels_out,
                      std::int64_t channels_in);

}  // namespace gyre::kernels
