#pragma once

#include <omp.h>

#include <array>
#include <cstdint>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "kernels/cpu/gemm_shape.h"

// oneDNN for the files of this folder; nothing else includes this.
namespace gyre::kernels::cpu {

/// Holds oneDNN to a slower instruction set where one is forced; before anything else is asked of it.
void limit_onednn();

const dnnl::engine& engine();
/// Of the calling thread.
dnnl::stream& stream();

/// Threads for a product of `work` multiply-adds: a fixed rule.
int threads_for(std::int64_t work);

/// While alive oneDNN, which takes its thread count from OpenMP, uses `count` threads.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int count) : previous_(omp_get_max_threads()), count_(count) {
    if (count_ != previous_) omp_set_num_threads(count_);
  }
  ~OpenMpThreads() {
    if (count_ != previous_) omp_set_num_threads(previous_);
  }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int previous_, count_;
};

dnnl::memory::desc desc_of(const StridedMatrices& s);

dnnl::matmul::primitive_desc describe_product(const GemmShape& s, const dnnl::memory::desc& b,
                                              bool accumulate, bool bias);

/// A primitive with its argument list, of which only pointers change from call to call.
class Product {
 public:
  Product(const GemmShape& s, const dnnl::memory::desc& b, bool accumulate, bool bias);

  const std::string& name() const { return name_; }
  void run(const float* a, const float* b, float* c, const float* bias);
  /// With a packed B, which keeps its memory object: setting the pointer of a padded layout would write
  /// padding.
  void run_packed(const float* a, const dnnl::memory& b, float* c, const float* bias);

 private:
  void add(int argument, const dnnl::memory::desc& desc);
  void set(std::size_t i, const void* data);
  void execute(const float* a, dnnl_memory_t b, float* c, const float* bias);

  dnnl::primitive primitive_;
  std::array<dnnl::memory, 5> memories_;
  std::array<dnnl_exec_arg_t, 5> arguments_{};
  int count_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::string name_;
};

/// What a primitive was made for.
struct ProductKey {
  GemmShape shape;
  std::uint64_t layout = 0;  ///< of a packed B, else 0
  int threads = 1;
  bool accumulate = false, bias = false;
  bool operator==(const ProductKey&) const = default;
};

struct ProductKeyHash {
  std::size_t operator()(const ProductKey& key) const;
};

constexpr std::size_t max_primitives = 1024;

/// A map of the calling thread, since memory objects carry the pointers of one call; oneDNN shares the
/// compiled code between threads. When full it starts over, for ragged shapes that never return.
template <class Value>
class ProductCache {
 public:
  template <class Make>
  Value& get(const ProductKey& key, Make&& make) {
    const auto found = map_.find(key);
    if (found != map_.end()) return found->second;
    if (map_.size() >= max_primitives) map_.clear();
    return map_.emplace(key, make()).first->second;
  }
  std::size_t size() const { return map_.size(); }

 private:
  std::unordered_map<ProductKey, Value, ProductKeyHash> map_;
};

ProductCache<Product>& products();

/// Calls f and turns oneDNN's exceptions into ours.
template <class F>
decltype(auto) guarded(const GemmShape& s, F&& f) {
  try {
    limit_onednn();
    return f();
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN, product of {} times [{}, {}] x [{}, {}]: {}", s.batch, s.m, s.k, s.k,
                            s.n, error.what()));
  }
}

}  // namespace gyre::kernels::cpu
