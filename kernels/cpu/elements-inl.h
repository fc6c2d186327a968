// Group elements of adjacent channels as vectors. Compiled once per instruction set: include after
// hwy/highway.h.
#if defined(GYRE_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GYRE_ELEMENTS_INL_H
#undef GYRE_ELEMENTS_INL_H
#else
#define GYRE_ELEMENTS_INL_H
#endif

#include <cstdint>
#include <cstring>

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
#endif

/// load_elements for f32 with the channels in the order that costs the fewest shuffles: the same for every t,
/// and for store_shuffled.
template <int G, class D>
HWY_INLINE void load_shuffled(D d, const float* x, hn::Vec<D>* v) {
#if HWY_TARGET != HWY_SCALAR
  using V = hn::Vec<D>;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  const auto at = [&](std::size_t i) { return hn::LoadU(d, x + i * lanes); };
  if constexpr (G == 4) {
    return transpose_blocks(d, at(0), at(1), at(2), at(3), v);
  } else if constexpr (G == 8) {
    // Even blocks of a and b hold elements 0..3 of their channels, odd blocks 4..7.
    V a[4], b[4];
    transpose_blocks(d, at(0), at(2), at(4), at(6), a);
    transpose_blocks(d, at(1), at(3), at(5), at(7), b);
    for (int t = 0; t < 4; ++t) {
      if constexpr (lanes == 4) {
        v[t] = a[t];
        v[t + 4] = b[t];
      } else {
        v[t] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b[t]), a[t]);
        v[t + 4] = hn::OddEvenBlocks(b[t], hn::SwapAdjacentBlocks(a[t]));
      }
    }
    return;
  }
#endif
  load_elements<G>(d, x, v);
}

/// Inverse of load_shuffled.
template <int G, class D>
HWY_INLINE void store_shuffled(D d, const hn::Vec<D>* v, float* y) {
#if HWY_TARGET != HWY_SCALAR
  using V = hn::Vec<D>;
  constexpr std::size_t lanes = hn::MaxLanes(d);
  const auto store = [&](const V* from, std::size_t first, std::size_t step) {
    V out[4];
    transpose_blocks(d, from[0], from[1], from[2], from[3], out);
    for (std::size_t i = 0; i < 4; ++i) hn::StoreU(out[i], d, y + (first + i * step) * lanes);
  };
  if constexpr (G == 4) {
    return store(v, 0, 1);
  } else if constexpr (G == 8) {
    if constexpr (lanes == 4) {
      store(v, 0, 2);
      store(v + 4, 1, 2);
    } else {
      V a[4], b[4];
      for (int t = 0; t < 4; ++t) {
        a[t] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[t + 4]), v[t]);
        b[t] = hn::OddEvenBlocks(v[t + 4], hn::SwapAdjacentBlocks(v[t]));
      }
      store(a, 0, 2);
      store(b, 1, 2);
    }
    return;
  }
#endif
  store_elements<G>(d, v, y);
}

/// The first `count` lanes from memory, zeros after them.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* x, std::int64_t count) {
  constexpr std::size_t lanes = hn::MaxLanes(d);
  if (count >= static_cast<std::int64_t>(lanes)) return hn::LoadU(d, x);
  HWY_ALIGN T buffer[lanes] = {};
  std::memcpy(buffer, x, static_cast<std::size_t>(count) * sizeof(T));
  return hn::Load(d, buffer);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some(D d, hn::Vec<D> v, std::int64_t count, T* y) {
  constexpr std::size_t lanes = hn::MaxLanes(d);
  if (count >= static_cast<std::int64_t>(lanes)) return hn::StoreU(v, d, y);
  HWY_ALIGN T buffer[lanes];
  hn::Store(v, d, buffer);
  std::memcpy(y, buffer, static_cast<std::size_t>(count) * sizeof(T));
}

/// load_elements of the first `count` channels, zeros after them.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void load_some_elements(D d, const T* x, std::int64_t count, hn::Vec<D>* v) {
  constexpr std::size_t lanes = hn::MaxLanes(d);
  if (count >= static_cast<std::int64_t>(lanes)) return load_elements<G>(d, x, v);
  HWY_ALIGN T buffer[G * lanes] = {};
  std::memcpy(buffer, x, static_cast<std::size_t>(count * G) * sizeof(T));
  load_elements<G>(d, buffer, v);
}

template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some_elements(D d, const hn::Vec<D>* v, std::int64_t count, T* y) {
  constexpr std::size_t lanes = hn::MaxLanes(d);
  if (count >= static_cast<std::int64_t>(lanes)) return store_elements<G>(d, v, y);
  HWY_ALIGN T buffer[G * lanes];
  store_elements<G>(d, v, buffer);
  std::memcpy(y, buffer, static_cast<std::size_t>(count * G) * sizeof(T));
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
