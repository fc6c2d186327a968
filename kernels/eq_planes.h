#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/eq_linear.h"
#include "kernels/typed_copy.h"

namespace gyre::kernels {

/// Contents of the cache: each part remembers the contents of W and the product that it was built from.
struct EqPlanes::State {
  /// What the naive product multiplies by.
  struct DenseEqLayer {
    Tensor matrix;  // [D·T, C·T]
    Tensor bias;    // [D·T] or undefined
  };

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
  LayerCopies copies;
  std::mutex mutex;
  std::atomic<int> rebuilds = 0;
};

/// The dense layer of w and b, from the cache; outlives a rebuild by another thread.
std::shared_ptr<const EqPlanes::State::DenseEqLayer> dense_eq_layer(const Group& group, const Tensor& w,
                                                                    const Tensor& b, EqPlanes::State& state);

}  // namespace gyre::kernels
