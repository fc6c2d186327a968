#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "kernels/cpu/simd_targets.h"

#ifndef GYRE_KERNELS_CPU_ATTENTION_HEAD_
#define GYRE_KERNELS_CPU_ATTENTION_HEAD_
namespace gyre::kernels::cpu {
namespace {

constexpr std::int64_t query_block = 48;  // queries whose scores are worked on at once
constexpr std::int64_t line = 64;         // bytes

/// n rounded up to `bytes`, a power of two.
template <class T>
constexpr std::int64_t padded(std::int64_t n, std::int64_t bytes = line) {
  const std::int64_t unit = bytes / static_cast<std::int64_t>(sizeof(T));
  return (n + unit - 1) / unit * unit;
}

/// Elements of n columns in panels of two vectors: 128 bytes at most.
template <class T>
constexpr std::int64_t panelled(std::int64_t n) {
  return padded<T>(n, 2 * line);
}

/// Distance of score rows: an odd number of cache lines, so that a column spreads over the cache's sets.
template <class T>
constexpr std::int64_t score_stride(std::int64_t n) {
  return padded<T>(n) + (padded<T>(n) / padded<T>(1) % 2 == 0 ? padded<T>(1) : 0);
}

/// One head of one image: q, k, v [length, width] with rows `stride` apart; y and grad rows lie y_stride
/// apart. bias and mask: dense [length, length] or null.
template <class T>
struct Head {
  std::int64_t length, width, stride, y_stride;
  T scale;
  const T *q, *k, *v;
  T* scratch;
  const T *bias = nullptr, *mask = nullptr;
};

}  // namespace
}  // namespace gyre::kernels::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/panel_product-inl.h"
#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

/// row *= factor, and kept = row unless null; the row is readable to the end of its last vector.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void finish_row(D d, T factor, T* row, T* kept, std::int64_t n) {
  const std::int64_t lanes = lane_count(d), whole = n - n % lanes;
  const auto f = hn::Set(d, factor);
  if (kept == nullptr) {
    for (std::int64_t i = 0; i < n; i += lanes) hn::StoreU(hn::Mul(f, hn::LoadU(d, row + i)), d, row + i);
    return;
  }
  for (std::int64_t i = 0; i < whole; i += lanes) {
    const auto value = hn::Mul(f, hn::LoadU(d, row + i));
    hn::StoreU(value, d, row + i);
    hn::StoreU(value, d, kept + i);
  }
  if (whole == n) return;
  const auto value = hn::Mul(f, hn::LoadU(d, row + whole));
  hn::StoreU(value, d, row + whole);
  store_part(value, d, kept + whole, n - whole);
}

/// to[0, n) += from[0, n).
template <class T>
HWY_INLINE void add_row(const T* from, T* to, std::int64_t n) {
  map(
      n, to, [](auto, auto a, auto b) { return hn::Add(a, b); }, to, from);
}

/// probabilities: dense [length, length] or null.
template <class T>
HWY_INLINE void forward_one(const Head<T>& h, T* y, T* probabilities) {
  const hn::ScalableTag<T> d;
  T* at = h.scratch;
  const auto keys = pack_transposed(h.k, h.stride, h.length, h.width, at);
  at += h.width * panelled<T>(h.length);
  const auto values = pack(h.v, h.stride, h.length, h.width, at);
  at += h.length * panelled<T>(h.width);
  const Rows<T> scores{at, score_stride<T>(h.length)};
  for (std::int64_t first = 0; first < h.length; first += query_block) {
    const std::int64_t count = std::min(query_block, h.length - first);
    product<T>({h.q + first * h.stride, h.stride, 1}, keys, count, padded<T>(h.length), h.scale, scores);
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = scores.data + i * scores.stride;
      if (h.bias != nullptr) add_row(h.bias + (first + i) * h.length, row, h.length);
      if (h.mask != nullptr) add_row(h.mask + (first + i) * h.length, row, h.length);
      const T sum = exponentiate_row(d, row, row, h.length).sum;
      finish_row(d, T(1) / sum, row,
                 probabilities == nullptr ? nullptr : probabilities + (first + i) * h.length, h.length);
    }
    product<T>({scores.data, scores.stride, 1}, values, count, h.width, T(1),
               {y + first * h.y_stride, h.y_stride});
  }
}

/// row = p ∘ (row - p · row): the softmax's backward.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void score_gradient(D d, const T* p, T* row, std::int64_t n) {
  const std::int64_t lanes = lane_count(d), whole = n - n % lanes;
  auto dot = hn::Zero(d), other = dot;
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    dot = hn::MulAdd(hn::LoadU(d, p + j), hn::LoadU(d, row + j), dot);
    other = hn::MulAdd(hn::LoadU(d, p + j + lanes), hn::LoadU(d, row + j + lanes), other);
  }
  for (; j < whole; j += lanes) dot = hn::MulAdd(hn::LoadU(d, p + j), hn::LoadU(d, row + j), dot);
  const auto last = load_part(d, p + whole, n - whole);  // zeros beyond n
  if (whole < n) other = hn::MulAdd(last, hn::LoadU(d, row + whole), other);
  dot = hn::SumOfLanes(d, hn::Add(dot, other));
  for (j = 0; j < whole; j += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, p + j), hn::Sub(hn::LoadU(d, row + j), dot)), d, row + j);
  if (whole < n) hn::StoreU(hn::Mul(last, hn::Sub(hn::LoadU(d, row + whole), dot)), d, row + whole);
}

/// Adds the gradient of the scores to dbias, dense [length, length], unless null.
template <class T>
HWY_INLINE void backward_one(const Head<T>& h, const T* p, const T* grad, T* dq, T* dk, T* dv, T* dbias) {
  const hn::ScalableTag<T> d;
  const std::int64_t length = h.length, width = h.width;
  T *left = h.scratch, *right = left + width * panelled<T>(length);
  const Rows<T> scores{right + length * panelled<T>(width), score_stride<T>(length)};
  const auto values = pack_transposed(h.v, h.stride, length, width, left);
  const auto keys = pack(h.k, h.stride, length, width, right);
  for (std::int64_t first = 0; first < length; first += query_block) {
    const std::int64_t count = std::min(query_block, length - first);
    const Rows<T> block{scores.data + first * scores.stride, scores.stride};
    // dP = dY Vᵀ, then dS in its place.
    product<T>({grad + first * h.y_stride, h.y_stride, 1}, values, count, padded<T>(length), T(1), block);
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = block.data + i * block.stride;
      score_gradient(d, p + (first + i) * length, row, length);
      if (dbias != nullptr) add_row<T>(row, dbias + (first + i) * length, length);
    }
    product<T>({block.data, block.stride, 1}, keys, count, width, h.scale, {dq + first * h.stride, h.stride});
  }
  const auto queries = pack(h.q, h.stride, length, width, right);
  product<T>({scores.data, 1, scores.stride}, queries, length, width, h.scale, {dk, h.stride});
  const auto outer = pack(grad, h.y_stride, length, width, right);
  product<T>({p, 1, length}, outer, length, width, T(1), {dv, h.stride});
}

#define GYRE_DEFINE(T, SUFFIX)                                                                            \
  void forward_##SUFFIX(const Head<T>& head, T* y, T* probabilities) {                                    \
    forward_one(head, y, probabilities);                                                                  \
  }                                                                                                       \
  void backward_##SUFFIX(const Head<T>& head, const T* p, const T* grad, T* dq, T* dk, T* dv, T* dbias) { \
    backward_one(head, p, grad, dq, dk, dv, dbias);                                                       \
  }
GYRE_DEFINE(float, f32)
GYRE_DEFINE(double, f64)
#undef GYRE_DEFINE

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
namespace {

GYRE_EXPORT(forward);
GYRE_EXPORT(backward);

/// `count` elements of this thread's scratch memory, 64-byte aligned.
template <class T>
T* scratch(std::int64_t count) {
  struct alignas(64) Line {
    T values[64 / sizeof(T)];
  };
  thread_local std::vector<Line> lines;
  const auto needed = static_cast<std::size_t>(padded<T>(count) / padded<T>(1));
  if (lines.size() < needed) lines.resize(needed);
  return lines.data()->values;
}

/// Elements of scratch memory for one head: panels of two factors, and scores [length, length].
template <class T>
std::int64_t scratch_size(std::int64_t length, std::int64_t width) {
  return width * panelled<T>(length) + length * panelled<T>(width) + length * score_stride<T>(length);
}

/// Head h of image b, without bias and mask.
template <class T>
Head<T> head_of(const Tensor& qkv, const T* data, std::int64_t b, std::int64_t h, T* memory) {
  const std::int64_t length = qkv.size(1), width = qkv.size(4), row = qkv.size(3) * width;
  const T* q = data + b * length * 3 * row + h * width;
  return {length, width,   3 * row,     row,   static_cast<T>(1.0 / std::sqrt(static_cast<double>(width))),
          q,      q + row, q + 2 * row, memory};
}

std::int64_t heads_per_task(const Tensor& qkv) {
  const std::int64_t work = std::max<std::int64_t>(1, qkv.size(1) * qkv.size(1) * qkv.size(4));
  return std::max<std::int64_t>(1, 32768 / work);
}

/// Adds up the gradient of one head's bias: in T over `flush` images, then in f64.
template <class T>
class BiasSum {
 public:
  explicit BiasSum(std::int64_t size)
      : recent_(static_cast<std::size_t>(size)), total_(static_cast<std::size_t>(size)) {}
  /// Where the next image is added.
  T* next() {
    if (++images_ > flush) add_recent();
    return recent_.data();
  }
  /// Adds the sum to `result` and starts anew.
  void take(T* result) {
    add_recent();
    for (std::size_t i = 0; i < total_.size(); ++i) result[i] += static_cast<T>(total_[i]);
    std::fill(total_.begin(), total_.end(), 0.0);
  }

 private:
  static constexpr int flush = 64;
  void add_recent() {
    for (std::size_t i = 0; i < total_.size(); ++i) total_[i] += static_cast<double>(recent_[i]);
    std::fill(recent_.begin(), recent_.end(), T(0));
    images_ = 1;
  }

  int images_ = 0;
  std::vector<T> recent_;
  std::vector<double> total_;
};

}  // namespace

void attention_forward(const Tensor& qkv, const ScoreBias& added, bool keep, AttentionResult& result) {
  const std::int64_t length = qkv.size(1), heads = qkv.size(3), width = qkv.size(4), area = length * length;
  dispatch_floating(qkv.dtype(), "attention_forward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(forward, T);
    const T* data = qkv.data<T>();
    if (keep) result.probabilities = Tensor::empty({qkv.size(0), heads, length, length}, qkv.dtype());
    T* py = result.y.mutable_data<T>();
    T* pp = keep ? result.probabilities.mutable_data<T>() : nullptr;
    const T* bias = added.bias.defined() ? added.bias.data<T>() : nullptr;
    const T* mask = added.mask.defined() ? added.mask.data<T>() : nullptr;
    parallel_for(0, qkv.size(0) * heads, heads_per_task(qkv), [&](std::int64_t first, std::int64_t last) {
      T* memory = scratch<T>(scratch_size<T>(length, width));
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t b = i / heads, h = i % heads;
        Head<T> head = head_of(qkv, data, b, h, memory);
        if (bias != nullptr) head.bias = bias + h * area;
        if (mask != nullptr) head.mask = mask + b % added.mask.size(0) * area;
        run(head, py + (b * length * heads + h) * width, pp == nullptr ? nullptr : pp + i * area);
      }
    });
  });
}

void attention_backward(const Tensor& qkv, const AttentionResult& forward, const ScoreBias&,
                        const Tensor& grad, Tensor& result, Tensor& bias_gradient) {
  const std::int64_t images = qkv.size(0), length = qkv.size(1), heads = qkv.size(3), width = qkv.size(4);
  const std::int64_t row = heads * width, area = length * length;
  const bool with_bias = bias_gradient.defined();
  dispatch_floating(qkv.dtype(), "attention_backward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(backward, T);
    const T *data = qkv.data<T>(), *pp = forward.probabilities.data<T>(), *pg = grad.data<T>();
    T* pr = result.mutable_data<T>();
    T* pb = with_bias ? bias_gradient.mutable_data<T>() : nullptr;
    // With a bias head by head, so that a task shares few with its neighbours; these wait in `shared`, in
    // order.
    std::map<std::int64_t, std::vector<T>> shared;
    std::mutex mutex;
    parallel_for(0, images * heads, heads_per_task(qkv), [&](std::int64_t first, std::int64_t last) {
      T* memory = scratch<T>(scratch_size<T>(length, width));
      BiasSum<T> sum(with_bias ? area : 0);
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t h = with_bias ? i / images : i % heads, b = with_bias ? i % images : i / heads;
        const std::int64_t offset = b * length * row + h * width;
        T* dq = pr + b * length * 3 * row + h * width;
        run(head_of(qkv, data, b, h, memory), pp + (b * heads + h) * area, pg + offset, dq, dq + row,
            dq + 2 * row, with_bias ? sum.next() : nullptr);
        if (!with_bias || (b + 1 < images && i + 1 < last)) continue;
        if (h * images >= first && b + 1 == images) {
          sum.take(pb + h * area);
        } else {
          std::vector<T> part(static_cast<std::size_t>(area));
          sum.take(part.data());
          const std::lock_guard lock(mutex);
          shared.emplace(i, std::move(part));
        }
      }
    });
    for (const auto& [i, part] : shared) {
      T* to = pb + i / images * area;
      for (std::int64_t j = 0; j < area; ++j) to[j] += part[static_cast<std::size_t>(j)];
    }
  });
}

}  // namespace gyre::kernels::cpu
#endif
