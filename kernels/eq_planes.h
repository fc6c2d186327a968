#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/eq_linear.h"

namespace gyre::kernels {

/// Contents of the cache: each part remembers the contents of W and the product that it was built from.
struct EqPlanes::State {
  /// What the naive product multiplies by.
  struct DenseEqLayer {
    Tensor matrix;  // [D·T, C·T]
    Tensor bias;    // [D·T] or undefined
  };

  /// Which contents something was built from; views of one storage share its version.
  struct Source {
    std::uint64_t version = 0;  // 0 is never drawn
    const void* data = nullptr;
    Shape shape;
    bool is(const Tensor& w) const {
      return version == w.version() && data == w.raw_data() && shape == w.shape();
    }
  };
  static Source source_of(const Tensor& w) { return {w.version(), w.raw_data(), w.shape()}; }

  struct Fused {
    Source source;
    const BilinearForm* form = nullptr;
    int lanes = 0;             // of the instruction set that packed
    Tensor forward, backward;  // flash_kernels.h; undefined until used
  } fused;
  struct Packed {
    Source source;
    const BilinearForm* form = nullptr;
    Tensor planes;  // [P, D, C]
    // One per plane, f32; null until used.
    std::shared_ptr<const std::vector<cpu::PackedGemm>> forward, backward;
  } packed;
  struct Naive {
    Source source;
    const Group* group = nullptr;
    Source bias_source;
    std::shared_ptr<const DenseEqLayer> dense;
    PackedWeight packed;
  } naive;
  std::mutex mutex;
  std::atomic<int> rebuilds = 0;
};

/// The dense layer of w and b, from the cache; outlives a rebuild by another thread.
std::shared_ptr<const EqPlanes::State::DenseEqLayer> dense_eq_layer(const Group& group, const Tensor& w,
                                                                    const Tensor& b, EqPlanes::State& state);

}  // namespace gyre::kernels
