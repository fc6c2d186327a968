#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/library.h"
#include "core/cuda/runtime.h"
#include "core/deterministic.h"
#include "core/storage.h"
#include "kernels/cuda/blas_product.h"

namespace gyre::kernels::cuda {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // what cuBLAS asks for on Hopper
constexpr int max_devices = 64;
constexpr int most_proposals = 8;

/// The functions of cuBLASLt, opened at the first product.
struct CublasLt {
  gyre::cuda::Library library{fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)};
#define GYRE_FUNCTION(name) decltype(::name)* name = library.function<decltype(::name)>(#name)
  GYRE_FUNCTION(cublasLtCreate);
  GYRE_FUNCTION(cublasLtGetStatusName);
  GYRE_FUNCTION(cublasLtGetVersion);
  GYRE_FUNCTION(cublasLtMatmul);
  GYRE_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  GYRE_FUNCTION(cublasLtMatmulDescCreate);
  GYRE_FUNCTION(cublasLtMatmulDescSetAttribute);
  GYRE_FUNCTION(cublasLtMatmulPreferenceCreate);
  GYRE_FUNCTION(cublasLtMatmulPreferenceDestroy);
  GYRE_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  GYRE_FUNCTION(cublasLtMatrixLayoutCreate);
  GYRE_FUNCTION(cublasLtMatrixLayoutSetAttribute);
#undef GYRE_FUNCTION
};

const CublasLt& lt() {
  static const CublasLt functions;
  return functions;
}

void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    gyre::cuda::throw_failed_call(call, file, line, lt().cublasLtGetStatusName(status),
                                  status == CUBLAS_STATUS_ALLOC_FAILED);
}
#define GYRE_CHECK(call) check(call, #call, __FILE__, __LINE__)

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::f32: return CUDA_R_32F;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_16BF;
  }
}

/// The largest power of two up to 256 that all addresses are multiples of; null is.
template <class... P>
std::uint32_t alignment_of(const P*... pointers) {
  const std::uintptr_t bits = (reinterpret_cast<std::uintptr_t>(pointers) | ... | 256);
  return 1U << std::countr_zero(bits);
}

/// What decides the kernel of a product.
struct Key {
  GemmShape shape;
  DType dtype, result;
  bool accumulate, tf32, bias, gelu_tanh, pre_activation;
  std::uint32_t a_alignment, b_alignment, c_alignment;
  bool operator==(const Key&) const = default;
};

Key key_of(const Product& p) {
  return {p.shape,
          p.dtype,
          p.result,
          p.accumulate,
          p.dtype == DType::f32 && tf32_allowed(),
          p.bias != nullptr,
          p.gelu_tanh,
          p.pre_activation != nullptr,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(p.c, p.bias, p.pre_activation)};
}

struct KeyHash {
  std::size_t operator()(const Key& k) const {
    cpu::HashStream hash;
    hash << static_cast<std::int64_t>(cpu::hash_of(k.shape)) << static_cast<int>(k.dtype)
         << static_cast<int>(k.result)
         << (k.accumulate | k.tf32 << 1 | k.bias << 2 | k.gelu_tanh << 3 | k.pre_activation << 4)
         << k.a_alignment << k.b_alignment << k.c_alignment;
    return hash.value();
  }
};

/// A chosen kernel with the descriptions of its operands; never freed, like the library.
struct Plan {
  bool found = false;
  std::vector<cublasLtMatmulAlgo_t> proposals;  // most promising first
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

template <class T>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what, T value) {
  GYRE_CHECK(lt().cublasLtMatmulDescSetAttribute(product, what, &value, sizeof value));
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, T value) {
  GYRE_CHECK(lt().cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value));
}

cublasLtMatrixLayout_t layout(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t leading,
                              std::int64_t batch, std::int64_t batch_stride) {
  cublasLtMatrixLayout_t result = nullptr;
  GYRE_CHECK(lt().cublasLtMatrixLayoutCreate(&result, type_of(dtype), static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(cols), leading));
  const auto count = static_cast<std::int32_t>(batch);
  GYRE_CHECK(lt().cublasLtMatrixLayoutSetAttribute(result, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                   sizeof count));
  GYRE_CHECK(lt().cublasLtMatrixLayoutSetAttribute(result, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                   &batch_stride, sizeof batch_stride));
  return result;
}

/// A row-major operand as the library sees it: its columns as rows. `transpose` if its rows are not adjacent.
cublasLtMatrixLayout_t operand(DType dtype, const cpu::StridedMatrices& x, cublasOperation_t& transpose) {
  const bool by_rows = x.col == 1 && x.row >= x.cols;
  transpose = by_rows ? CUBLAS_OP_N : CUBLAS_OP_T;
  return by_rows ? layout(dtype, x.cols, x.rows, x.row, x.batch, x.batch_stride)
                 : layout(dtype, x.rows, x.cols, x.col, x.batch, x.batch_stride);
}

cublasLtEpilogue_t epilogue_of(const Key& k) {
  if (k.gelu_tanh && k.pre_activation)
    return k.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (k.gelu_tanh) return k.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return k.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// C = A·B row-major is Cᵀ = Bᵀ·Aᵀ column-major: the library's left operand is B.
Plan make_plan(cublasLtHandle_t handle, const Key& k) {
  const GemmShape& s = k.shape;
  const bool f64 = k.dtype == DType::f64;
  Plan plan;
  GYRE_CHECK(lt().cublasLtMatmulDescCreate(&plan.product,
                                           f64      ? CUBLAS_COMPUTE_64F
                                           : k.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F,
                                           f64 ? CUDA_R_64F : CUDA_R_32F));
  cublasOperation_t left = CUBLAS_OP_N, right = CUBLAS_OP_N;
  plan.left = operand(k.dtype, b_of(s), left);
  plan.right = operand(k.dtype, a_of(s), right);
  plan.result = layout(k.result, s.n, s.m, s.c_row, s.batch, s.c_batch);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, left);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, right);
  set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(k));
  if (k.bias) set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(k.result));
  if (k.pre_activation) {
    set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.c_row);
    set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, s.c_batch);
  }

  cublasLtMatmulPreference_t preference = nullptr;
  GYRE_CHECK(lt().cublasLtMatmulPreferenceCreate(&preference));
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  // Parts of a sum meet in f32, not in 16 bits.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, k.b_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, k.a_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, k.c_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, k.c_alignment);
  std::array<cublasLtMatmulHeuristicResult_t, most_proposals> proposals{};
  int count = 0;
  const cublasStatus_t status = lt().cublasLtMatmulAlgoGetHeuristic(
      handle, plan.product, plan.left, plan.right, plan.result, plan.result, preference,
      deterministic() ? 1 : most_proposals, proposals.data(), &count);
  lt().cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
    check(status, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& proposal = proposals[static_cast<std::size_t>(i)];
    if (proposal.state == CUBLAS_STATUS_SUCCESS) plan.proposals.push_back(proposal.algo);
  }
  plan.found = !plan.proposals.empty();
  if (plan.found) plan.algorithm = plan.proposals.front();
  return plan;
}

/// The library on one device; calls take turns.
class DeviceBlas {
 public:
  explicit DeviceBlas(int index) : index_(index) {
    void* const stream = gyre::cuda::compute_stream(index);  // makes the device current
    workspace_ = gyre::cuda::allocate(workspace_bytes, index, stream);
    try {
      GYRE_CHECK(lt().cublasLtCreate(&handle_));
    } catch (...) {
      gyre::cuda::deallocate(workspace_, workspace_bytes, index);
      throw;
    }
  }

  bool run(const Product& p) {
    gyre::cuda::compute_stream(index_);  // makes the device current
    const std::lock_guard lock(mutex_);
    const Key key = key_of(p);
    auto known = plans_.find(key);
    if (known == plans_.end()) {
      known = plans_.emplace(key, make_plan(handle_, key)).first;
      if (known->second.proposals.size() > 1) keep_fastest(known->second, p);
    }
    const Plan& plan = known->second;
    if (!plan.found) return false;
    check(multiply(plan, plan.algorithm, p), "cublasLtMatmul", __FILE__, __LINE__);
    return true;
  }

 private:
  cublasStatus_t multiply(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, const Product& p) const {
    if (p.bias != nullptr) set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    if (p.pre_activation != nullptr)
      set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.pre_activation);
    const double beta = p.accumulate ? 1 : 0;
    const auto alpha_f32 = static_cast<float>(p.alpha), beta_f32 = static_cast<float>(beta);
    const bool f64 = p.dtype == DType::f64;
    const void* const alpha = f64 ? static_cast<const void*>(&p.alpha) : &alpha_f32;
    return lt().cublasLtMatmul(handle_, plan.product, alpha, p.b, plan.left, p.a, plan.right,
                               f64 ? static_cast<const void*>(&beta) : &beta_f32, p.c, plan.result, p.c,
                               plan.result, &algorithm, workspace_, workspace_bytes,
                               static_cast<cudaStream_t>(gyre::cuda::compute_stream(index_)));
  }

  /// Times the proposals on these operands, with a result of their own.
  void keep_fastest(Plan& plan, Product p) const {
    constexpr int repeats = 4;
    const GemmShape& s = p.shape;
    if (s.batch > 1 && s.c_batch < 0) return;
    const std::int64_t extent = (s.batch - 1) * s.c_batch + (s.m - 1) * s.c_row + s.n;
    const std::size_t bytes = static_cast<std::size_t>(extent) * size_of(p.result);
    const Device device = Device::cuda(index_);
    void* const stream = gyre::cuda::compute_stream(index_);
    try {
      Storage result(bytes, device), beside(p.pre_activation != nullptr ? bytes : 0, device);
      p.c = result.mutable_data();
      if (p.pre_activation != nullptr) p.pre_activation = beside.mutable_data();
      gyre::cuda::Event start(index_, true), end(index_, true);
      double least = std::numeric_limits<double>::infinity();
      for (const cublasLtMatmulAlgo_t& proposal : plan.proposals) {
        bool works = multiply(plan, proposal, p) == CUBLAS_STATUS_SUCCESS;  // not timed: its code is loaded
        start.record(stream);
        for (int i = 0; i < repeats && works; ++i)
          works = multiply(plan, proposal, p) == CUBLAS_STATUS_SUCCESS;
        end.record(stream);
        end.synchronize();
        const double took = end.since(start);
        if (!works || took >= least) continue;
        least = took;
        plan.algorithm = proposal;
      }
    } catch (const OutOfMemoryError&) {
      // The most promising one stays.
    }
  }

  int index_;
  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::unordered_map<Key, Plan, KeyHash> plans_;
};

// Never destroyed: the driver may be gone before statics are.
DeviceBlas& blas_of(int index) {
  static std::array<DeviceBlas*, max_devices> devices{};
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  DeviceBlas*& device = devices.at(static_cast<std::size_t>(index));
  if (device == nullptr) device = std::make_unique<DeviceBlas>(index).release();
  return *device;
}

}  // namespace

bool run_product(int index, const Product& product) { return blas_of(index).run(product); }

std::string blas_version() {
  const std::size_t version = lt().cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace gyre::kernels::cuda
