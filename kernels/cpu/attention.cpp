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

constexpr std::int64_t query_block = 32;  // queries whose scores are held at once in the forward

/// n rounded up to 64 bytes: whole vectors on every instruction set.
template <class T>
constexpr std::int64_t padded(std::int64_t n) {
  constexpr std::int64_t unit = 64 / static_cast<std::int64_t>(sizeof(T));
  return (n + unit - 1) / unit * unit;
}

/// Distance of score rows: an odd number of cache lines, so that a column spreads over the cache's sets.
template <class T>
constexpr std::int64_t score_stride(std::int64_t n) {
  return padded<T>(n) +
         (padded<T>(n) * static_cast<std::int64_t>(sizeof(T)) / 64 % 2 == 0 ? padded<T>(1) : 0);
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

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Left factor: element (i, k) at data[i · row + k · column].
template <class T>
struct Left {
  const T* data;
  std::int64_t row, column;
};

/// Rows `stride` apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
};

/// c [R, n] = alpha · a [R, depth] · b [depth, V vectors], n ≤ V vectors.
template <int R, int V, class T>
HWY_INLINE void product_tile(Left<T> a, Rows<const T> b, std::int64_t depth, T alpha, Rows<T> c,
                             std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  hn::Vec<decltype(d)> sum[R][V];
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    sum[i][0] = hn::Zero(d);
    if constexpr (V == 2) sum[i][1] = hn::Zero(d);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const auto b0 = hn::LoadU(d, b.data + k * b.stride);
    const auto b1 = V == 2 ? hn::LoadU(d, b.data + k * b.stride + (V - 1) * lanes) : b0;
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i) {
      const auto value = hn::Set(d, a.data[i * a.row + k * a.column]);
      sum[i][0] = hn::MulAdd(value, b0, sum[i][0]);
      if constexpr (V == 2) sum[i][1] = hn::MulAdd(value, b1, sum[i][1]);
    }
  }
  const auto factor = hn::Set(d, alpha);
  const bool whole = n == V * lanes;
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    T* row = c.data + i * c.stride;
    if constexpr (V == 2) hn::StoreU(hn::Mul(factor, sum[i][0]), d, row);
    T* last = row + (V - 1) * lanes;
    const auto value = hn::Mul(factor, sum[i][V - 1]);
    if (whole) {
      hn::StoreU(value, d, last);
    } else {
      store_part(value, d, last, n - (V - 1) * lanes);
    }
  }
}

/// All rows of one panel of at most V vectors.
template <int V, class T>
HWY_INLINE void product_panel(Left<T> a, Rows<const T> b, std::int64_t rows, std::int64_t depth, T alpha,
                              Rows<T> c, std::int64_t n) {
  const auto advance = [&](std::int64_t count) {
    a.data += count * a.row;
    c.data += count * c.stride;
    rows -= count;
  };
  while (rows >= 8) product_tile<8, V>(a, b, depth, alpha, c, n), advance(8);
  if (rows >= 4) product_tile<4, V>(a, b, depth, alpha, c, n), advance(4);
  if (rows >= 2) product_tile<2, V>(a, b, depth, alpha, c, n), advance(2);
  if (rows >= 1) product_tile<1, V>(a, b, depth, alpha, c, n);
}

/// c [rows, n] = alpha · a [rows, depth] · b [depth, n]; rows of b are readable to the end of their last
/// vector.
template <class T>
HWY_NOINLINE void product(Left<T> a, Rows<const T> b, std::int64_t rows, std::int64_t depth, std::int64_t n,
                          T alpha, Rows<T> c) {
  const std::int64_t lanes = lane_count(hn::ScalableTag<T>());
  for (std::int64_t j = 0; j < n;) {
    const std::int64_t left = n - j;
    const Rows<const T> panel{b.data + j, b.stride};
    const Rows<T> out{c.data + j, c.stride};
    if (left > lanes) {
      product_panel<2>(a, panel, rows, depth, alpha, out, std::min(left, 2 * lanes));
      j += 2 * lanes;
    } else {
      product_panel<1>(a, panel, rows, depth, alpha, out, left);
      j += lanes;
    }
  }
}

/// to[0, n) = from[0, n), zeros up to `padding`, a multiple of the vector.
template <class T>
HWY_INLINE void copy_row(const T* from, T* to, std::int64_t n, std::int64_t padding) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (i < n) {
    hn::StoreU(load_part(d, from + i, n - i), d, to + i);
    i += lanes;
  }
  for (; i < padding; i += lanes) hn::StoreU(hn::Zero(d), d, to + i);
}

/// to[0, n) = from[0, n), where `from` is readable to the end of its last vector.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void keep_row(D d, const T* from, T* to, std::int64_t n) {
  const std::int64_t lanes = lane_count(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (i < n) store_part(hn::LoadU(d, from + i), d, to + i, n - i);
}

/// to [rows, padded width] = from [rows, width], zeros beyond.
template <class T>
HWY_INLINE Rows<const T> pack(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t width,
                              T* to) {
  const std::int64_t to_stride = padded<T>(width);
  for (std::int64_t i = 0; i < rows; ++i) copy_row(from + i * stride, to + i * to_stride, width, to_stride);
  return {to, to_stride};
}

/// to [width, padded rows] = transpose of from [rows, width], zeros beyond.
template <class T>
HWY_INLINE Rows<const T> pack_transposed(const T* from, std::int64_t stride, std::int64_t rows,
                                         std::int64_t width, T* to) {
  const std::int64_t to_stride = padded<T>(rows);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < width; ++j) to[j * to_stride + i] = from[i * stride + j];
  for (std::int64_t j = 0; j < width; ++j)
    std::fill(to + j * to_stride + rows, to + (j + 1) * to_stride, T(0));
  return {to, to_stride};
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
  at += h.width * padded<T>(h.length);
  const auto values = pack(h.v, h.stride, h.length, h.width, at);
  at += h.length * padded<T>(h.width);
  const Rows<T> scores{at, score_stride<T>(h.length)};
  for (std::int64_t first = 0; first < h.length; first += query_block) {
    const std::int64_t count = std::min(query_block, h.length - first);
    product<T>({h.q + first * h.stride, h.stride, 1}, keys, count, h.width, padded<T>(h.length), h.scale,
               scores);
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = scores.data + i * scores.stride;
      if (h.bias != nullptr) add_row(h.bias + (first + i) * h.length, row, h.length);
      if (h.mask != nullptr) add_row(h.mask + (first + i) * h.length, row, h.length);
      scale_row(d, T(1) / exponentiate_row(d, row, row, h.length).sum, row, h.length);
      if (probabilities != nullptr) keep_row(d, row, probabilities + (first + i) * h.length, h.length);
    }
    product<T>({scores.data, scores.stride, 1}, values, count, h.length, h.width, T(1),
               {y + first * h.y_stride, h.y_stride});
  }
}

/// scores = p ∘ (scores - y · grad), row by row: the softmax's backward.
template <class T>
HWY_INLINE void score_gradient(const Head<T>& h, const T* p, const T* y, const T* grad, Rows<T> scores) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lane_count(d);
  for (std::int64_t i = 0; i < h.length; ++i, p += h.length, y += h.y_stride, grad += h.y_stride) {
    auto dot = hn::Zero(d);
    std::int64_t j = 0;
    for (; j + lanes <= h.width; j += lanes)
      dot = hn::MulAdd(hn::LoadU(d, y + j), hn::LoadU(d, grad + j), dot);
    if (j < h.width)
      dot = hn::MulAdd(load_part(d, y + j, h.width - j), load_part(d, grad + j, h.width - j), dot);
    dot = hn::SumOfLanes(d, dot);
    T* row = scores.data + i * scores.stride;
    for (j = 0; j + lanes <= h.length; j += lanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, p + j), hn::Sub(hn::LoadU(d, row + j), dot)), d, row + j);
    if (j < h.length)
      hn::StoreU(hn::Mul(load_part(d, p + j, h.length - j), hn::Sub(hn::LoadU(d, row + j), dot)), d, row + j);
  }
}

/// Adds the gradient of the scores to dbias, dense [length, length], unless null.
template <class T>
HWY_INLINE void backward_one(const Head<T>& h, const T* p, const T* y, const T* grad, T* dq, T* dk, T* dv,
                             T* dbias) {
  T* at = h.scratch;
  const auto values = pack_transposed(h.v, h.stride, h.length, h.width, at);
  at += h.width * padded<T>(h.length);
  const Rows<T> scores{at, score_stride<T>(h.length)};
  at += h.length * scores.stride;
  // dP = dY Vᵀ, then dS in its place.
  product<T>({grad, h.y_stride, 1}, values, h.length, h.width, padded<T>(h.length), T(1), scores);
  score_gradient(h, p, y, grad, scores);
  for (std::int64_t i = 0; dbias != nullptr && i < h.length; ++i)
    add_row<T>(scores.data + i * scores.stride, dbias + i * h.length, h.length);
  const auto keys = pack(h.k, h.stride, h.length, h.width, at);
  product<T>({scores.data, scores.stride, 1}, keys, h.length, h.length, h.width, h.scale, {dq, h.stride});
  const auto queries = pack(h.q, h.stride, h.length, h.width, at);
  product<T>({scores.data, 1, scores.stride}, queries, h.length, h.length, h.width, h.scale, {dk, h.stride});
  const auto outer = pack(grad, h.y_stride, h.length, h.width, at);
  product<T>({p, 1, h.length}, outer, h.length, h.length, h.width, T(1), {dv, h.stride});
}

#define GYRE_DEFINE(T, SUFFIX)                                                                            \
  void forward_##SUFFIX(const Head<T>& head, T* y, T* probabilities) {                                    \
    forward_one(head, y, probabilities);                                                                  \
  }                                                                                                       \
  void backward_##SUFFIX(const Head<T>& head, const T* p, const T* y, const T* grad, T* dq, T* dk, T* dv, \
                         T* dbias) {                                                                      \
    backward_one(head, p, y, grad, dq, dk, dv, dbias);                                                    \
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

/// Elements of scratch memory for one head: transposed and plain copies [length, width], and scores [length,
/// length], all padded.
template <class T>
std::int64_t scratch_size(std::int64_t length, std::int64_t width) {
  return width * padded<T>(length) + length * padded<T>(width) + length * score_stride<T>(length);
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

void attention_forward(const Tensor& qkv, const ScoreBias& added, Tensor& y, Tensor& probabilities) {
  const std::int64_t length = qkv.size(1), heads = qkv.size(3), width = qkv.size(4), area = length * length;
  dispatch_floating(qkv.dtype(), "attention_forward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(forward, T);
    const T* data = qkv.data<T>();
    T* py = y.mutable_data<T>();
    T* pp = probabilities.defined() ? probabilities.mutable_data<T>() : nullptr;
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

void attention_backward(const Tensor& qkv, const Tensor& probabilities, const Tensor& y, const Tensor& grad,
                        Tensor& result, Tensor& bias_gradient) {
  const std::int64_t images = qkv.size(0), length = qkv.size(1), heads = qkv.size(3), width = qkv.size(4);
  const std::int64_t row = heads * width, area = length * length;
  const bool with_bias = bias_gradient.defined();
  dispatch_floating(qkv.dtype(), "attention_backward", [&]<class T>(T) {
    const auto run = GYRE_DISPATCH(backward, T);
    const T *data = qkv.data<T>(), *pp = probabilities.data<T>(), *py = y.data<T>(), *pg = grad.data<T>();
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
        run(head_of(qkv, data, b, h, memory), pp + (b * heads + h) * area, py + offset, pg + offset, dq,
            dq + row, dq + 2 * row, with_bias ? sum.next() : nullptr);
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
