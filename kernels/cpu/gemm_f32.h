#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/cpu/gemm_shape.h"

// Dense products in single precision: by oneDNN (onednn/), or by Eigen (eigen/) where gyre is built without
// it.
namespace gyre::kernels::cpu {

/// C = A·B, or C += A·B if `accumulate`. `bias` [n] or null is added to every row (not together with
/// `accumulate`). k = 0 gives zeros (or the bias); an empty C nothing. Any strides; operands without a unit
/// stride are copied first.
void gemm_f32(const GemmShape& shape, const float* a, const float* b, float* c, bool accumulate = false,
              const float* bias = nullptr);

/// The library that multiplies: "onednn" or "eigen".
std::string_view dense_library();
/// "oneDNN 2.6.3".
std::string dense_library_version();

/// Name of what gemm_f32 runs for this product: "eigen", "sgemm" (of oneDNN), or oneDNN's own
/// ("brg:avx512_core", "gemm:jit").
std::string gemm_f32_kernel(const GemmShape& shape, bool accumulate = false, bool bias = false);

/// A batch of right-hand sides B[b] (k×n) copied into the layout of the matrix kernels, for many products.
/// Immutable once packed: threads may share it.
class PackedGemm {
 public:
  PackedGemm();
  ~PackedGemm();
  PackedGemm(PackedGemm&&) noexcept;
  PackedGemm& operator=(PackedGemm&&) noexcept;

  /// Any strides. `m_hint`: the number of rows that products will have, for the choice of layout; others work
  /// too.
  static PackedGemm pack(std::int64_t batch, std::int64_t k, std::int64_t n, const float* b,
                         std::int64_t b_batch, std::int64_t b_row, std::int64_t b_col,
                         std::int64_t m_hint = 1024);

  bool packed() const { return state_ != nullptr; }
  std::size_t bytes() const;

  /// C[b] = A[b]·B[b] for A m×k; arguments as in gemm_f32. Fastest where A and C have no gaps.
  void run(std::int64_t m, const float* a, std::int64_t a_batch, std::int64_t a_row, std::int64_t a_col,
           float* c, std::int64_t c_batch, std::int64_t c_row, bool accumulate = false,
           const float* bias = nullptr) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gyre::kernels::cpu
