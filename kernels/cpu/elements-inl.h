// Group elements of adjacent channels as vectors. Compiled once per instruction set: include after
// hwy/highway.h.
#if defined(GYRE_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GYRE_ELEMENTS_INL_H
#undef GYRE_ELEMENTS_INL_H
#else
#define GYRE_ELEMENTS_INL_H
#endif

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// v[t] = element t of each of Lanes(d) channels at x [Lanes, G]; G = 1, 2, 4 or 8.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void load_elements(D d, const T* x, hn::Vec<D>* v) {
  if constexpr (G == 1) {
    v[0] = hn::LoadU(d, x);
  } else if constexpr (G == 2) {
    hn::LoadInterleaved2(d, x, v[0], v[1]);
  } else if constexpr (G == 4) {
    hn::LoadInterleaved4(d, x, v[0], v[1], v[2], v[3]);
  } else {
    // Elements 0..3 and 4..7 of each channel, then each as for G = 4.
    constexpr std::size_t lanes = hn::MaxLanes(d);
    HWY_ALIGN T low[4 * lanes], high[4 * lanes];
    for (std::size_t c = 0; c < lanes; ++c) {
      std::memcpy(low + 4 * c, x + 8 * c, 4 * sizeof(T));
      std::memcpy(high + 4 * c, x + 8 * c + 4, 4 * sizeof(T));
    }
    hn::LoadInterleaved4(d, low, v[0], v[1], v[2], v[3]);
    hn::LoadInterleaved4(d, high, v[4], v[5], v[6], v[7]);
  }
}

/// Inverse of load_elements.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_elements(D d, const hn::Vec<D>* v, T* y) {
  if constexpr (G == 1) {
    hn::StoreU(v[0], d, y);
  } else if constexpr (G == 2) {
    hn::StoreInterleaved2(v[0], v[1], d, y);
  } else if constexpr (G == 4) {
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, y);
  } else {
    constexpr std::size_t lanes = hn::MaxLanes(d);
    HWY_ALIGN T low[4 * lanes], high[4 * lanes];
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, low);
    hn::StoreInterleaved4(v[4], v[5], v[6], v[7], d, high);
    for (std::size_t c = 0; c < lanes; ++c) {
      std::memcpy(y + 8 * c, low + 4 * c, 4 * sizeof(T));
      std::memcpy(y + 8 * c + 4, high + 4 * c, 4 * sizeof(T));
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// 4×4 transposes inside each 128-bit block.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V a, V b, V c, V e, V* v) {
  const hn::RepartitionToWide<D> pairs;
  const auto pair = [&](V x) { return hn::BitCast(pairs, x); };
  const V ab = hn::InterleaveLower(d, a, b), ce = hn::InterleaveLower(d, c, e);
  const V ab_high = hn::InterleaveUpper(d, a, b), ce_high = hn::InterleaveUpper(d, c, e);
  v[0] = hn::BitCast(d, hn::InterleaveLower(pairs, pair(ab), pair(ce)));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, pair(ab), pair(ce)));
  v[2] = hn::BitCast(d, hn::InterleaveLower(pairs, pair(ab_high), pair(ce_high)));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, pair(ab_high), pair(ce_high)));
}

/// v[t] = element t of each of Lanes(d) channels that lie in `memory` as [Lanes, G], for f32 and G = 2, 4
/// or 8. Channels come in the order that costs the fewest shuffles: shuffled_channels.
template <int G, class D, class V = hn::Vec<D>>
HWY_INLINE void split_elements(D d, const V* memory, V* v) {
  if constexpr (G == 2) {
    const V low = hn::InterleaveLower(d, memory[0], memory[1]),
            high = hn::InterleaveUpper(d, memory[0], memory[1]);
    v[0] = hn::InterleaveLower(d, low, high);
    v[1] = hn::InterleaveUpper(d, low, high);
  } else if constexpr (G == 4) {
    transpose_blocks(d, memory[0], memory[1], memory[2], memory[3], v);
  } else {
    // Even blocks of a and b hold elements 0..3 of their channels, odd blocks 4..7.
    V a[4], b[4];
    transpose_blocks(d, memory[0], memory[2], memory[4], memory[6], a);
    transpose_blocks(d, memory[1], memory[3], memory[5], memory[7], b);
    for (int t = 0; t < 4; ++t) {
      if constexpr (hn::MaxLanes(D()) == 4) {
        v[t] = a[t];
        v[t + 4] = b[t];
      } else {
        v[t] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b[t]), a[t]);
        v[t + 4] = hn::OddEvenBlocks(b[t], hn::SwapAdjacentBlocks(a[t]));
      }
    }
  }
}

/// Inverse of split_elements.
template <int G, class D, class V = hn::Vec<D>>
HWY_INLINE void join_elements(D d, const V* v, V* memory) {
  if constexpr (G == 2) {
    memory[0] = hn::InterleaveLower(d, v[0], v[1]);
    memory[1] = hn::InterleaveUpper(d, v[0], v[1]);
  } else if constexpr (G == 4) {
    transpose_blocks(d, v[0], v[1], v[2], v[3], memory);
  } else {
    V a[4], b[4], even[4], odd[4];
    for (int t = 0; t < 4; ++t) {
      if constexpr (hn::MaxLanes(D()) == 4) {
        a[t] = v[t];
        b[t] = v[t + 4];
      } else {
        a[t] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[t + 4]), v[t]);
        b[t] = hn::OddEvenBlocks(v[t + 4], hn::SwapAdjacentBlocks(v[t]));
      }
    }
    transpose_blocks(d, a[0], a[1], a[2], a[3], even);
    transpose_blocks(d, b[0], b[1], b[2], b[3], odd);
    for (int i = 0; i < 4; ++i) {
      memory[2 * i] = even[i];
      memory[2 * i + 1] = odd[i];
    }
  }
}
#endif

/// Whether whole vectors of f32 come in an order of their own.
template <int G>
constexpr bool has_shuffles = (HWY_TARGET != HWY_SCALAR) && (G > 1);

/// The channel in each lane after load_shuffled.
template <int G, int Lanes>
constexpr std::array<std::int32_t, Lanes> shuffled_channels() {
  std::array<std::int32_t, Lanes> channels{};
  constexpr int blocks = Lanes / 4;
  for (int lane = 0; lane < Lanes; ++lane) {
    const int block = lane / 4, i = lane % 4;
    int& channel = channels[static_cast<std::size_t>(lane)];
    channel = lane;
    if constexpr (!has_shuffles<G>) continue;
    if constexpr (G == 2) {
      channel = i / 2 * (Lanes / 2) + 2 * block + i % 2;
    } else {
      const bool swapped = G == 8 && blocks == 4 && (block == 1 || block == 2);
      channel = i * blocks + (swapped ? 3 - block : block);
    }
  }
  return channels;
}

/// load_elements for f32 with the channels in the order of shuffled_channels.
template <int G, class D>
HWY_INLINE void load_shuffled(D d, const float* x, hn::Vec<D>* v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (has_shuffles<G>) {
    hn::Vec<D> memory[G];
    for (std::size_t i = 0; i < G; ++i) memory[i] = hn::LoadU(d, x + i * hn::MaxLanes(d));
    return split_elements<G>(d, memory, v);
  }
#endif
  load_elements<G>(d, x, v);
}

/// Inverse of load_shuffled.
template <int G, class D>
HWY_INLINE void store_shuffled(D d, const hn::Vec<D>* v, float* y) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (has_shuffles<G>) {
    hn::Vec<D> memory[G];
    join_elements<G>(d, v, memory);
    for (std::size_t i = 0; i < G; ++i) hn::StoreU(memory[i], d, y + i * hn::MaxLanes(d));
    return;
  }
#endif
  store_elements<G>(d, v, y);
}

/// Whether a part of a vector is read and written by masks, and its channels are sorted in the registers:
/// elsewhere they pass through memory.
template <int G, class T>
constexpr bool sorts_in_registers = (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3) && has_shuffles<G> &&
                                    (std::is_same_v<T, float>);

/// load_elements of the first `count` channels, zeros after them.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void load_some_elements(D d, const T* x, std::int64_t count, hn::Vec<D>* v) {
  constexpr std::int64_t lanes = hn::MaxLanes(D());
  if (count >= lanes) return load_elements<G>(d, x, v);
  if constexpr (sorts_in_registers<G, T>) {
    constexpr auto channels = shuffled_channels<G, static_cast<int>(lanes)>();
    HWY_ALIGN std::int32_t lane_of[lanes];
    for (std::int32_t i = 0; i < lanes; ++i) lane_of[channels[static_cast<std::size_t>(i)]] = i;
    const auto sorted = hn::SetTableIndices(d, lane_of);
    hn::Vec<D> memory[G];
    for (int i = 0; i < G; ++i) {
      const std::int64_t left = count * G - i * lanes;
      memory[i] = left <= 0 ? hn::Zero(d) : load_part(d, x + i * lanes, HWY_MIN(left, lanes));
    }
    split_elements<G>(d, memory, v);
    for (int t = 0; t < G; ++t) v[t] = hn::TableLookupLanes(v[t], sorted);
  } else {
    HWY_ALIGN T buffer[G * lanes] = {};
    std::memcpy(buffer, x, static_cast<std::size_t>(count * G) * sizeof(T));
    load_elements<G>(d, buffer, v);
  }
}

/// store_elements of the first `count` channels.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some_elements(D d, const hn::Vec<D>* v, std::int64_t count, T* y) {
  constexpr std::int64_t lanes = hn::MaxLanes(D());
  if (count >= lanes) return store_elements<G>(d, v, y);
  if constexpr (sorts_in_registers<G, T>) {
    HWY_ALIGN static constexpr auto channels = shuffled_channels<G, static_cast<int>(lanes)>();
    const auto shuffled = hn::SetTableIndices(d, channels.data());
    hn::Vec<D> own[G], memory[G];
    for (int t = 0; t < G; ++t) own[t] = hn::TableLookupLanes(v[t], shuffled);
    join_elements<G>(d, own, memory);
    for (int i = 0; i < G; ++i) {
      const std::int64_t left = count * G - i * lanes;
      if (left <= 0) return;
      store_part(memory[i], d, y + i * lanes, HWY_MIN(left, lanes));
    }
  } else {
    HWY_ALIGN T buffer[G * lanes];
    store_elements<G>(d, v, buffer);
    std::memcpy(y, buffer, static_cast<std::size_t>(count * G) * sizeof(T));
  }
}

/// The first `count` lanes from memory, zeros after them.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* x, std::int64_t count) {
  return count >= lane_count(d) ? hn::LoadU(d, x) : load_part(d, x, count);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some(D d, hn::Vec<D> v, std::int64_t count, T* y) {
  if (count >= lane_count(d)) return hn::StoreU(v, d, y);
  store_part(v, d, y, count);
}

/// Σ_t m[t] · v[t].
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> combine(D d, const T* m, const hn::Vec<D>* v) {
  auto sum = hn::Mul(hn::Set(d, m[0]), v[0]);
  for (int t = 1; t < G; ++t) sum = hn::MulAdd(hn::Set(d, m[t]), v[t], sum);
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif
