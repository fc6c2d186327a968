#include <algorithm>

#include "core/parallel.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/flash_weights.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/flash_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gyre::kernels::cpu {
namespace HWY_NAMESPACE {

/// Channels [first, last) of D of W in panels whose columns are C: rows of W are vectors of a panel already.
template <int G>
void pack_transposed(const FlashWeights& s, const float* w, std::int64_t first, std::int64_t last,
                     float* packed) {
  const DenseTransform<G> form{s.products, s.weight};
  const F32 d;
  for (std::int64_t k = first; k < last; k += vector_lanes) {
    const auto channel = channel_of_lane<G>(s.channels_out - k);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(vector_lanes, s.channels_out - k); ++i) {
      const float* row = w + (k + channel[static_cast<std::size_t>(i)]) * s.channels_in * G;
      for (std::int64_t c = 0; c < round_up(s.channels_in, panel); c += vector_lanes) {
        V v[G];
        for (int t = 0; t < G; ++t) v[t] = hn::Zero(d);
        if (c < s.channels_in) load_channels<G>(row + c * G, s.channels_in - c, v);
        form.split(v, packed + (c / panel * s.products * s.channels_out + k + i) * panel + c % panel,
                   s.channels_out * panel);
      }
    }
  }
}

/// Panel [first, first + panel) of D, its rows C.
template <int G>
void pack_panel(const FlashWeights& s, const float* w, std::int64_t first, float* packed) {
  const DenseTransform<G> form{s.products, s.weight};
  const F32 d;
  const std::int64_t tile = vector_lanes * vector_lanes;
  const ThreadScratch<float> scratch(s.products * tile);
  float* planes = scratch.data();
  packed += first * s.products * s.channels_in;
  for (int half = 0; half < 2; ++half, first += vector_lanes, packed += vector_lanes) {
    const auto channel = channel_of_lane<G>(s.channels_out - first);
    for (std::int64_t c = 0; c < s.channels_in; c += vector_lanes) {
      for (int i = 0; i < vector_lanes; ++i) {
        const std::int64_t row = first + channel[static_cast<std::size_t>(i)];
        V v[G];
        for (int t = 0; t < G; ++t) v[t] = hn::Zero(d);
        if (row < s.channels_out) load_channels<G>(w + (row * s.channels_in + c) * G, s.channels_in - c, v);
        form.split(v, planes + i * vector_lanes, tile);
      }
      const std::int64_t some = std::min<std::int64_t>(vector_lanes, s.channels_in - c);
      for (int p = 0; p < s.products; ++p)
        for (std::int64_t j = 0; j < some; ++j) {
          float* to = packed + (p * s.channels_in + c + j) * panel;
          for (int i = 0; i < vector_lanes; ++i) to[i] = planes[p * tile + i * vector_lanes + j];
        }
    }
  }
}

template <int G>
void pack_all(const FlashWeights& s, const float* w, bool transposed, float* packed) {
  const std::int64_t unit = transposed ? vector_lanes : panel, units = (s.channels_out + unit - 1) / unit;
  const std::int64_t grain = 8192 / (unit * std::max<std::int64_t>(1, s.channels_in)) + 1;
  parallel_for(0, units, grain, [&](std::int64_t first, std::int64_t last) {
    if (transposed)
      return pack_transposed<G>(s, w, first * unit, std::min(last * unit, s.channels_out), packed);
    for (; first < last; ++first) pack_panel<G>(s, w, first * unit, packed);
  });
}

/// dW [D, C, G] of channels whose sums start at `sums`.
template <int G>
void unpack_all(const FlashWeights& s, const float* sums, std::int64_t parts, std::int64_t part, float* dw) {
  const DenseTransform<G> form{s.products, s.weight};
  const F32 d;
  const std::int64_t padded_c = round_up(s.channels_in, vector_lanes),
                     padded_d = round_up(s.channels_out, vector_lanes);
  const std::int64_t plane = padded_c * padded_d, blocks = padded_d / vector_lanes;
  const std::int64_t grain = 8192 / (vector_lanes * std::max<std::int64_t>(1, padded_c)) + 1;
  parallel_for(0, blocks, grain, [&](std::int64_t first, std::int64_t last) {
    const ThreadScratch<float> scratch(s.products * vector_lanes);
    float* total = scratch.data();
    for (std::int64_t row = first * vector_lanes; row < std::min(last * vector_lanes, s.channels_out);
         ++row) {
      const auto channel = channel_of_lane<G>(s.channels_out - row / vector_lanes * vector_lanes);
      float* to =
          dw + (row / vector_lanes * vector_lanes + channel[static_cast<std::size_t>(row % vector_lanes)]) *
                   s.channels_in * G;
      for (std::int64_t c = 0; c < s.channels_in; c += vector_lanes) {
        for (int p = 0; p < s.products; ++p) {
          const float* from = sums + p * plane + sum_offset(row, c, padded_c, padded_d);
          V sum = hn::Load(d, from);
          for (std::int64_t i = 1; i < parts; ++i) sum = hn::Add(sum, hn::Load(d, from + i * part));
          hn::Store(sum, d, total + p * vector_lanes);
        }
        V v[G];
        form.merge(total, vector_lanes, hn::Zero(d), v);
        store_channels<G>(v, s.channels_in - c, to + c * G);
      }
    }
  });
}

/// bias[c] of sums in the order of the lanes.
template <int G>
void unpack_bias(std::int64_t channels, const float* sums, std::int64_t parts, std::int64_t part,
                 float* bias) {
  for (std::int64_t c = 0; c < channels; c += vector_lanes) {
    const auto channel = channel_of_lane<G>(channels - c);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(vector_lanes, channels - c); ++i) {
      float sum = 0;
      for (std::int64_t k = 0; k < parts; ++k) sum += sums[k * part + c + i];
      bias[c + channel[static_cast<std::size_t>(i)]] = sum;
    }
  }
}

void pack(const FlashWeights& s, const float* w, bool transposed, float* packed) {
  with_order(s.order, [&]<int G>() { pack_all<G>(s, w, transposed, packed); });
}

void unpack(const FlashWeights& s, const float* sums, std::int64_t parts, std::int64_t part, float* dw,
            float* bias) {
  with_order(s.order, [&]<int G>() {
    const std::int64_t all =
        s.products * round_up(s.channels_in, vector_lanes) * round_up(s.channels_out, vector_lanes);
    if (dw) unpack_all<G>(s, sums, parts, part, dw);
    if (bias) unpack_bias<G>(s.channels_out, sums + all, parts, part, bias);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre::kernels::cpu {
HWY_EXPORT(pack);
HWY_EXPORT(unpack);

std::int64_t packed_flash_size(int products, std::int64_t channels_in, std::int64_t channels_out) {
  return products * channels_in * round_up(channels_out, 2 * flash_lanes());
}
void pack_flash_weights(const FlashWeights& form, const float* w, bool transposed, float* packed) {
  GYRE_CHOSEN(pack)(form, w, transposed, packed);
}
std::int64_t flash_sums_size(int products, std::int64_t channels_in, std::int64_t channels_out) {
  const std::int64_t vector_lanes = flash_lanes(), padded_d = round_up(channels_out, vector_lanes);
  return (products * round_up(channels_in, vector_lanes) + 1) * padded_d;
}
void unpack_flash_sums(const FlashWeights& form, const float* sums, std::int64_t parts, std::int64_t part,
                       float* dw, float* db) {
  GYRE_CHOSEN(unpack)(form, sums, parts, part, dw, db);
}

}  // namespace gyre::kernels::cpu
#endif
