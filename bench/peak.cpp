#include "bench/peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/parallel.h"
#include "core/tensor.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gyre {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Independent chains of multiply-adds; returns FLOPs done. `sink` keeps the compiler from removing them.
double burn(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  constexpr int chains = 12;
  hn::Vec<decltype(d)> sum[chains];
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = hn::MulAdd(sum[i], a, b);
  }
  auto total = sum[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) total = hn::Add(total, sum[i]);
  *sink = hn::GetLane(hn::SumOfLanes(d, total));
  return 2.0 * chains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace gyre
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gyre {
HWY_EXPORT(burn);

double measure_peak_gflops() {
  const int threads = num_threads();
  double best = 0;
  for (int burst = 0; burst < 20; ++burst) {
    std::vector<double> done(static_cast<std::size_t>(threads));
    const auto start = std::chrono::steady_clock::now();
    parallel_for(0, threads, 1, [&](std::int64_t first, std::int64_t last) {
      volatile float keep = 0;
      for (std::int64_t i = first; i < last; ++i) {
        float sink = 0;
        done[static_cast<std::size_t>(i)] = GYRE_CHOSEN(burn)(2'000'000, &sink);
        keep = sink;
      }
      (void)keep;
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double flops = 0;
    for (const double part : done) flops += part;
    best = std::max(best, 1e-9 * flops / seconds);
  }
  return best;
}

double measure_bandwidth_gbs() {
  constexpr std::int64_t floats = 16 << 20;  // 64 MB each, several times any cache share of two cores
  const Tensor source = Tensor::full({floats}, 1, DType::f32);
  Tensor target = Tensor::empty({floats});
  const float* from = source.data<float>();
  float* to = target.mutable_data<float>();
  double best = 0;
  for (int pass = 0; pass < 10; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(0, floats, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) to[i] = from[i] + 1;
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 1e-9 * 2 * sizeof(float) * floats / seconds);
  }
  return best;
}

std::string highway_version() { return fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH); }

}  // namespace gyre
#endif
