#include "kernels/cpu/onednn/product.h"

#include "core/parallel.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd.h"

namespace gyre::kernels::cpu {
namespace {

using dnnl::memory;

// Below this many multiply-adds, waking a second thread costs more than it saves (about 2 µs).
constexpr std::int64_t serial_work = 1 << 18;

memory::desc bias_desc(std::int64_t batch, std::int64_t n) {
  if (batch == 1) return {{1, n}, memory::data_type::f32, memory::dims{n, 1}};
  return {{1, 1, n}, memory::data_type::f32, memory::dims{n, n, 1}};
}

void check(dnnl_status_t status) { dnnl::error::wrap_c_api(status, "could not execute a matmul primitive"); }

/// oneDNN knows no plain code: SSE4.1 is the least that it compiles for.
bool limit_to(Simd set) {
  const dnnl::cpu_isa isa = set == Simd::portable ? dnnl::cpu_isa::sse41 : dnnl::cpu_isa::avx2;
  const dnnl::status status = dnnl::set_max_cpu_isa(isa);
  // Refused after its first use, by other code of the process; unknown beyond x86.
  require(status == dnnl::status::success || status == dnnl::status::unimplemented,
          "GYRE_SIMD={}: oneDNN was used before gyre and cannot be held to that", name_of(set));
  return true;
}

}  // namespace

void limit_onednn() {
  if (const Simd set = simd(); set == Simd::portable || set == Simd::avx2) {
    static const bool limited = set == machine_simd().back() || limit_to(set);
    (void)limited;
  }
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream one(engine());
  return one;
}

int threads_for(std::int64_t work) {
  if (in_parallel() || work < serial_work) return 1;
  num_threads();  // tells OpenMP the count
  return omp_get_max_threads();
}

memory::desc desc_of(const StridedMatrices& s) {
  if (s.batch == 1) return {{s.rows, s.cols}, memory::data_type::f32, memory::dims{s.row, s.col}};
  const std::int64_t batch = s.batch_stride == 0 ? 1 : s.batch;
  const std::int64_t stride = s.batch_stride == 0 ? s.rows * s.cols : s.batch_stride;
  return {{batch, s.rows, s.cols}, memory::data_type::f32, memory::dims{stride, s.row, s.col}};
}

dnnl::matmul::primitive_desc describe_product(const GemmShape& s, const memory::desc& b, bool accumulate,
                                              bool bias) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  const memory::desc a = desc_of(a_of(s)), c = desc_of(c_of(s));
  const dnnl::matmul::desc product =
      bias ? dnnl::matmul::desc(a, b, bias_desc(s.batch, s.n), c) : dnnl::matmul::desc(a, b, c);
  return {product, attributes, engine()};
}

Product::Product(const GemmShape& s, const memory::desc& b, bool accumulate, bool bias) {
  const auto description = describe_product(s, b, accumulate, bias);
  name_ = description.impl_info_str();
  primitive_ = dnnl::matmul(description);
  scratch_bytes_ = description.scratchpad_desc().get_size();
  add(DNNL_ARG_SRC, description.src_desc());
  add(DNNL_ARG_WEIGHTS, description.weights_desc());
  add(DNNL_ARG_DST, description.dst_desc());
  add(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  if (bias) add(DNNL_ARG_BIAS, description.bias_desc());
}

void Product::run(const float* a, const float* b, float* c, const float* bias) {
  set(1, b);
  execute(a, memories_[1].get(), c, bias);
}

void Product::run_packed(const float* a, const memory& b, float* c, const float* bias) {
  execute(a, b.get(), c, bias);
}

void Product::add(int argument, const memory::desc& desc) {
  const auto i = static_cast<std::size_t>(count_++);
  memories_[i] = memory(desc, engine(), nullptr);
  arguments_[i] = {argument, memories_[i].get()};
}

void Product::set(std::size_t i, const void* data) {
  check(dnnl_memory_set_data_handle(memories_[i].get(), const_cast<void*>(data)));
}

void Product::execute(const float* a, dnnl_memory_t b, float* c, const float* bias) {
  const ScratchBuffer<char> scratch(static_cast<std::int64_t>(scratch_bytes_));
  set(0, a);
  arguments_[1].memory = b;
  set(2, c);
  set(3, scratch.data());
  if (bias != nullptr) set(4, bias);
  check(dnnl_primitive_execute(primitive_.get(), stream().get(), count_, arguments_.data()));
}

std::size_t ProductKeyHash::operator()(const ProductKey& key) const {
  HashStream hash;
  hash << static_cast<std::int64_t>(hash_of(key.shape)) << static_cast<std::int64_t>(key.layout)
       << key.threads * 4 + key.accumulate * 2 + key.bias;
  return hash.value();
}

ProductCache<Product>& products() {
  thread_local ProductCache<Product> cache;
  return cache;
}

}  // namespace gyre::kernels::cpu
