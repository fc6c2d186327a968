#include <algorithm>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/onednn/product.h"
#include "kernels/cpu/scratch.h"

namespace gyre::kernels::cpu {

using dnnl::memory;

struct PackedGemm::State {
  State(std::int64_t batches, std::int64_t rows, std::int64_t cols, const memory::desc& desc)
      : batch(batches), k(rows), n(cols), buffer(static_cast<std::int64_t>(desc.get_size())) {
    if (desc.get_size() > 0) weights = memory(desc, engine(), buffer.data());
  }

  std::int64_t batch, k, n;
  ScratchBuffer<char> buffer;
  memory weights;
  std::uint64_t layout = 0;
  bool row_major = false;  // no blocks: usable by every kernel
};

namespace {

/// Tells layouts apart in the keys of the cache; never 0.
std::uint64_t fingerprint(const memory::desc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  const auto& blocking = d.format_desc.blocking;
  HashStream hash;
  for (int i = 0; i < d.ndims; ++i) hash << d.padded_dims[i] << blocking.strides[i];
  for (int i = 0; i < blocking.inner_nblks; ++i) hash << blocking.inner_blks[i] << blocking.inner_idxs[i];
  return hash.value() | 1;
}

/// How to bring a strided B into its packed layout.
struct Packing {
  memory::desc packed;
  dnnl::reorder reorder;
  memory source;
  bool row_major;
};

Packing make_packing(const GemmShape& s) {
  const memory::dims dims = s.batch == 1 ? memory::dims{s.k, s.n} : memory::dims{s.batch, s.k, s.n};
  const memory::desc any(dims, memory::data_type::f32, memory::format_tag::any);
  const memory::desc from = desc_of(b_of(s)), to = describe_product(s, any, false, false).weights_desc();
  const StridedMatrices dense{s.batch, s.k, s.n, s.batch == 1 ? 0 : s.k * s.n, s.n, 1};
  return {to, dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to)),
          memory(from, engine(), nullptr), to == desc_of(dense)};
}

Packing& packing_for(const GemmShape& s, int threads) {
  thread_local ProductCache<Packing> cache;
  return cache.get({s, 0, threads, false, false}, [&] { return make_packing(s); });
}

}  // namespace

PackedGemm::PackedGemm() = default;
PackedGemm::~PackedGemm() = default;
PackedGemm::PackedGemm(PackedGemm&&) noexcept = default;
PackedGemm& PackedGemm::operator=(PackedGemm&&) noexcept = default;

std::size_t PackedGemm::bytes() const {
  return state_ && state_->weights ? state_->weights.get_desc().get_size() : 0;
}

PackedGemm PackedGemm::pack(std::int64_t batch, std::int64_t k, std::int64_t n, const float* b,
                            std::int64_t b_batch, std::int64_t b_row, std::int64_t b_col,
                            std::int64_t m_hint) {
  PackedGemm result;
  if (batch == 0 || k == 0 || n == 0) {
    result.state_ = std::make_unique<State>(batch, k, n, memory::desc());
    return result;
  }
  if (batch > 1 && b_batch == 0) {
    const ScratchBuffer<float> copies(batch * k * n);
    for (std::int64_t i = 0; i < batch; ++i)
      copy_dense({1, k, n, 0, b_row, b_col}, b, copies.data() + i * k * n);
    return pack(batch, k, n, copies.data(), k * n, n, 1, m_hint);
  }
  const std::int64_t m = std::max<std::int64_t>(1, m_hint);
  const GemmShape s = canonical({batch, m, n, k, m * k, k, 1, b_batch, b_row, b_col, m * n, n});
  const StridedMatrices from = b_of(s);
  if (!from.has_unit_stride() || !from.has_regular_batch()) {
    const ScratchBuffer<float> dense(from.count());
    copy_dense(from, b, dense.data());
    return pack(batch, k, n, dense.data(), k * n, n, 1, m_hint);
  }
  guarded(s, [&] {
    const int threads = threads_for(s.work());
    const OpenMpThreads scope(threads);
    Packing& packing = packing_for(s, threads);
    result.state_ = std::make_unique<State>(batch, k, n, packing.packed);
    result.state_->layout = fingerprint(packing.packed);
    result.state_->row_major = packing.row_major;
    packing.source.set_data_handle(const_cast<float*>(b));
    packing.reorder.execute(stream(), packing.source, result.state_->weights);
  });
  return result;
}

void PackedGemm::run(std::int64_t m, const float* a, std::int64_t a_batch, std::int64_t a_row,
                     std::int64_t a_col, float* c, std::int64_t c_batch, std::int64_t c_row, bool accumulate,
                     const float* bias) const {
  require(packed(), "PackedGemm was run before it was packed");
  const std::int64_t batch = state_->batch, k = state_->k, n = state_->n;
  GemmShape s{batch, m, n, k, a_batch, a_row, a_col, k * n, n, 1, c_batch, c_row};
  if (state_->row_major || s.work() == 0) {
    const auto* b = reinterpret_cast<const float*>(state_->buffer.data());
    return gemm_f32(s, a, b, c, accumulate, bias);
  }
  s = canonical(s);
  if (const StridedMatrices x = a_of(s); !x.is_dense()) {
    const ScratchBuffer<float> dense(x.count());
    copy_dense(x, a, dense.data());
    return run(m, dense.data(), x.batch_stride == 0 ? 0 : m * k, k, 1, c, c_batch, c_row, accumulate, bias);
  }
  if (!c_of(s).is_dense()) {
    const ScratchBuffer<float> dense(batch * m * n);
    run(m, a, a_batch, a_row, a_col, dense.data(), m * n, n, false, bias);
    return copy_to_rows(dense.data(), c_of(s), c, accumulate);
  }
  guarded(s, [&] {
    const int threads = threads_for(s.work());
    const OpenMpThreads scope(threads);
    products()
        .get({s, state_->layout, threads, accumulate, bias != nullptr},
             [&] { return Product(s, state_->weights.get_desc(), accumulate, bias != nullptr); })
        .run_packed(a, state_->weights, c, bias);
  });
}

}  // namespace gyre::kernels::cpu
