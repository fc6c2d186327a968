#include "kernels/cpu/gemm_f32.h"

#include "core/error.h"
#include "kernels/cpu/eigen_gemm.h"
#include "kernels/cpu/scratch.h"

namespace gyre::kernels::cpu {

struct PackedGemm::State {
  State(std::int64_t batches, std::int64_t rows, std::int64_t cols)
      : batch(batches), k(rows), n(cols), b(batches * rows * cols) {}

  std::int64_t batch, k, n;
  ScratchBuffer<float> b;  // [batch, k, n]
};

void gemm_f32(const GemmShape& shape, const float* a, const float* b, float* c, bool accumulate,
              const float* bias) {
  eigen_gemm(shape, a, b, c, accumulate, bias);
}

std::string_view dense_library() { return "eigen"; }

std::string dense_library_version() { return eigen_version(); }

std::string gemm_f32_kernel(const GemmShape& shape, bool, bool) {
  return shape.work() == 0 ? "none" : "eigen";
}

PackedGemm::PackedGemm() = default;
PackedGemm::~PackedGemm() = default;
PackedGemm::PackedGemm(PackedGemm&&) noexcept = default;
PackedGemm& PackedGemm::operator=(PackedGemm&&) noexcept = default;

std::size_t PackedGemm::bytes() const {
  return state_ ? static_cast<std::size_t>(state_->batch * state_->k * state_->n) * sizeof(float) : 0;
}

PackedGemm PackedGemm::pack(std::int64_t batch, std::int64_t k, std::int64_t n, const float* b,
                            std::int64_t b_batch, std::int64_t b_row, std::int64_t b_col, std::int64_t) {
  PackedGemm result;
  result.state_ = std::make_unique<State>(batch, k, n);
  for (std::int64_t i = 0; i < batch; ++i)
    copy_dense({1, k, n, 0, b_row, b_col}, b + i * b_batch, result.state_->b.data() + i * k * n);
  return result;
}

void PackedGemm::run(std::int64_t m, const float* a, std::int64_t a_batch, std::int64_t a_row,
                     std::int64_t a_col, float* c, std::int64_t c_batch, std::int64_t c_row, bool accumulate,
                     const float* bias) const {
  require(packed(), "PackedGemm was run before it was packed");
  const auto& [batch, k, n, b] = *state_;
  gemm_f32({batch, m, n, k, a_batch, a_row, a_col, k * n, n, 1, c_batch, c_row}, a, b.data(), c, accumulate,
           bias);
}

}  // namespace gyre::kernels::cpu
