#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/scratch.h"

#include "kernels/cpu/onednn/primitives.h"
#include "kernels/cpu/onednn/product.h"

namespace gyre::kernels::cpu {
namespace {

/// Tall transposed A, the shape of weight gradients: dnnl_sgemm copies it in blocks and is up to 1.4 times
/// faster than the matmul primitive from about a thousand rows on; below, or for thin results, slower.
bool takes_sgemm(const GemmShape& s, bool bias) {
  return !bias && s.a_row == 1 && s.a_col > 1 && s.k >= 1024 && s.m >= 16 && s.n >= 16 &&
         s.m * s.n * s.k >= (1 << 21);
}

void run_sgemm(const GemmShape& s, const float* a, const float* b, float* c, bool accumulate) {
  const bool b_rows = s.b_col == 1 && s.b_row >= s.n;
  for (std::int64_t i = 0; i < s.batch; ++i) {
    const dnnl::status status = dnnl::sgemm('T', b_rows ? 'N' : 'T', s.m, s.n, s.k, 1.0F, a + i * s.a_batch,
                                            s.a_col, b + i * s.b_batch, b_rows ? s.b_row : s.b_col,
                                            accumulate ? 1.0F : 0.0F, c + i * s.c_batch, s.c_row);
    dnnl::error::wrap_c_api(static_cast<dnnl_status_t>(status), "sgemm failed");
  }
}

Product& product_for(const GemmShape& s, int threads, bool accumulate, bool bias) {
  return products().get({s, 0, threads, accumulate, bias},
                        [&] { return Product(s, desc_of(b_of(s)), accumulate, bias); });
}

/// A product whose operands all have unit strides and a regular batch.
void run_plain(const GemmShape& s, const float* a, const float* b, float* c, bool accumulate,
               const float* bias) {
  const int threads = threads_for(s.work());
  const OpenMpThreads scope(threads);
  if (takes_sgemm(s, bias != nullptr))
    run_sgemm(s, a, b, c, accumulate);
  else
    product_for(s, threads, accumulate, bias != nullptr).run(a, b, c, bias);
}

void make_dense(const StridedMatrices& x, std::int64_t& batch_stride, std::int64_t& row, std::int64_t& col) {
  batch_stride = x.batch_stride == 0 ? 0 : x.rows * x.cols;
  row = x.cols;
  col = 1;
}

bool regular(const GemmShape& s) {
  const bool all_shared = s.batch > 1 && s.a_batch == 0 && s.b_batch == 0;
  return !all_shared && a_of(s).has_regular_batch() && b_of(s).has_regular_batch() &&
         c_of(s).has_regular_batch();
}

/// One product of a batch that oneDNN cannot describe as a whole.
GemmShape one_of(GemmShape s) {
  s.batch = 1;
  return canonical(s);
}

}  // namespace

void gemm_f32(const GemmShape& shape, const float* a, const float* b, float* c, bool accumulate,
              const float* bias) {
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {
    if (!accumulate) fill_rows(c_of(shape), bias, c);
    return;
  }
  GemmShape s = canonical(shape);
  if (const StridedMatrices x = a_of(s); !x.has_unit_stride()) {
    const ScratchBuffer<float> dense(x.count());
    copy_dense(x, a, dense.data());
    make_dense(x, s.a_batch, s.a_row, s.a_col);
    return gemm_f32(s, dense.data(), b, c, accumulate, bias);
  }
  if (const StridedMatrices x = b_of(s); !x.has_unit_stride()) {
    const ScratchBuffer<float> dense(x.count());
    copy_dense(x, b, dense.data());
    make_dense(x, s.b_batch, s.b_row, s.b_col);
    return gemm_f32(s, a, dense.data(), c, accumulate, bias);
  }
  guarded(s, [&] {
    if (regular(s)) return run_plain(s, a, b, c, accumulate, bias);
    for (std::int64_t i = 0; i < s.batch; ++i) {
      run_plain(one_of(s), a + i * s.a_batch, b + i * s.b_batch, c + i * s.c_batch, accumulate, bias);
    }
  });
}

std::string_view dense_library() { return "onednn"; }

std::string dense_library_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

std::string gemm_f32_kernel(const GemmShape& shape, bool accumulate, bool bias) {
  if (shape.work() == 0) return "none";
  GemmShape s = canonical(shape);
  if (!a_of(s).has_unit_stride()) make_dense(a_of(s), s.a_batch, s.a_row, s.a_col);
  if (!b_of(s).has_unit_stride()) make_dense(b_of(s), s.b_batch, s.b_row, s.b_col);
  if (!regular(s)) s = one_of(s);
  if (takes_sgemm(s, bias)) return "sgemm";
  const int threads = threads_for(s.work());
  const OpenMpThreads scope(threads);
  return guarded(s, [&] { return product_for(s, threads, accumulate, bias).name(); });
}

std::size_t cached_gemm_primitives() { return products().size(); }
std::size_t max_cached_gemm_primitives() { return max_primitives; }

}  // namespace gyre::kernels::cpu
