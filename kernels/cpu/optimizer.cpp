#include "kernels/cpu/optimizer.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "kernels/cpu/optimizer_loops.h"

namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t grain = 16384;      // elements per task
constexpr std::int64_t norm_chunk = 4096;  // elements per partial sum, whatever the thread count

/// One place in the flat index range over all tensors.
struct Piece {
  DType dtype;
  std::int64_t begin, count;
  void* p;
  const void* g;
  void* m;
  void* v;
};

class Pieces {
 public:
  void add(Tensor* p, const Tensor& g, Tensor* m = nullptr, Tensor* v = nullptr) {
    if (g.numel() == 0) return;
    const auto raw = [](Tensor* x) { return x == nullptr ? nullptr : x->raw_mutable_data(); };
    pieces_.push_back({g.dtype(), total_, g.numel(), raw(p), g.raw_data(), raw(m), raw(v)});
    total_ += g.numel();
  }

  /// Calls f(range) in parallel on ranges that cover every element once.
  template <class F>
  void run(F&& f) const {
    parallel_for(0, total_, grain, [&](std::int64_t first, std::int64_t last) {
      auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), first,
                                    [](std::int64_t i, const Piece& x) { return i < x.begin; }) -
                   1;
      for (; piece != pieces_.end() && piece->begin < last; ++piece) {
        const std::int64_t from = std::max(first, piece->begin) - piece->begin;
        const std::int64_t to = std::min(last - piece->begin, piece->count);
        if (piece->dtype == DType::f32)
          f(range_of<float>(*piece, from, to));
        else
          f(range_of<double>(*piece, from, to));
      }
    });
  }

 private:
  template <class T>
  static ElementRange<T> range_of(const Piece& piece, std::int64_t from, std::int64_t to) {
    const auto at = [&](void* data) { return data == nullptr ? nullptr : static_cast<T*>(data) + from; };
    return {at(piece.p), static_cast<const T*>(piece.g) + from, at(piece.m), at(piece.v), to - from};
  }

  std::vector<Piece> pieces_;
  std::int64_t total_ = 0;
};

}  // namespace

void adamw_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
                std::span<Tensor> v, const AdamWStep& options) {
  Pieces pieces;
  for (std::size_t i = 0; i < params.size(); ++i) pieces.add(&params[i], grads[i], &m[i], &v[i]);
  pieces.run([factors = AdamWFactors(options)](const auto& range) { adamw_range(range, factors); });
}

void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> buffers,
              const SgdStep& options) {
  Pieces pieces;
  for (std::size_t i = 0; i < params.size(); ++i) {
    pieces.add(&params[i], grads[i], options.momentum == 0 ? nullptr : &buffers[i]);
  }
  pieces.run([&](const auto& range) { sgd_range(range, options); });
}

void lerp(std::span<Tensor> target, std::span<const Tensor> source, double weight) {
  Pieces pieces;
  for (std::size_t i = 0; i < target.size(); ++i) pieces.add(&target[i], source[i]);
  pieces.run([&](const auto& range) { lerp_range(range, weight); });
}

void sum_squares(std::span<const Tensor> grads, double& result) {
  struct Chunk {
    const Tensor* tensor;
    std::int64_t begin;
  };
  std::vector<Chunk> chunks;
  for (const Tensor& g : grads) {
    for (std::int64_t begin = 0; begin < g.numel(); begin += norm_chunk) chunks.push_back({&g, begin});
  }
  std::vector<double> sums(chunks.size());
  parallel_for(0, static_cast<std::int64_t>(chunks.size()), grain / norm_chunk,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   const auto [tensor, begin] = chunks[static_cast<std::size_t>(i)];
                   const std::int64_t count = std::min(norm_chunk, tensor->numel() - begin);
                   sums[static_cast<std::size_t>(i)] =
                       tensor->dtype() == DType::f32
                           ? sum_squares_range(tensor->data<float>() + begin, count)
                           : sum_squares_range(tensor->data<double>() + begin, count);
                 }
               });
  result = 0;
  for (const double sum : sums) result += sum;
}

}  // namespace gyre::kernels::cpu
