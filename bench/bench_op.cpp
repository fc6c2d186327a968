#include "bench/bench_op.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "bench/peak.h"
#include "bench/statistics.h"
#include "core/group.h"
#include "core/random.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/eq_linear.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::EqBackend;
using kernels::LinearGrads;

constexpr std::int64_t checked_rows = 256;

double rel_l2(const Tensor& out, const Tensor& reference) {
  const auto a = out.to_vector(), b = reference.to_vector();
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(error / std::max(norm, 1e-300));
}

/// One layer in one implementation, ready to run.
class Layer {
 public:
  Layer(const Group& group, std::string impl, std::int64_t channels, int products, const Tensor& w,
        const Tensor& b)
      : group_(group), impl_(std::move(impl)), channels_(channels) {
    options_.backend = impl_ == "naive" ? EqBackend::naive : EqBackend::flash;
    options_.products = products;
    if (impl_ == "standard") {
      weight_ = kernels::expand_eq_weight(group, w);
      bias_ = b.unsqueeze(1).expand({channels, group.order()}).reshape({channels * group.order()});
    } else {
      weight_ = w;
      bias_ = b;
    }
  }

  const std::string& impl() const { return impl_; }
  std::string kernel(std::int64_t rows) const {
    if (impl_ == "standard") return fmt::format("linear_{}", kernels::cpu::dense_library());
    return kernels::eq_linear_kernel(group_, options_, DType::f32, rows, channels_, channels_);
  }
  /// FLOPs of one product pair of planes or of the dense layer, forward.
  double flops(std::int64_t rows) const {
    const double n = static_cast<double>(rows), c = static_cast<double>(channels_), order = group_.order();
    if (impl_ != "flash") return 2 * n * c * order * c * order;
    const int products = options_.products ? options_.products : group_.fewest_form().products();
    return 2 * products * n * c * c;
  }

  Tensor forward(const Tensor& x) {
    if (impl_ == "standard")
      return kernels::linear_forward(flat(x), weight_, bias_, &packed_).reshape(x.shape());
    return kernels::eq_linear_forward(group_, x, weight_, bias_, options_, &planes_);
  }
  /// The standard layer's dW and db are folded to the shapes of the equivariant one by `comparable`.
  LinearGrads backward(const Tensor& x, const Tensor& dy) {
    if (impl_ == "standard")
      return kernels::linear_backward(flat(x), weight_, flat(dy), true, true, true, &packed_);
    return kernels::eq_linear_backward(group_, x, weight_, dy, true, true, true, options_, &planes_);
  }
  LinearGrads comparable(LinearGrads grads) const {
    if (impl_ != "standard") return grads;
    const int order = group_.order();
    grads.x = grads.x.reshape({-1, channels_, order});
    grads.w = kernels::fold_eq_weight(group_, grads.w, channels_, channels_);
    Tensor b = Tensor::zeros({channels_}, grads.b.dtype());
    const Tensor wide = grads.b.reshape({channels_, order}).to(DType::f64);
    float* to = b.mutable_data<float>();
    for (std::int64_t d = 0; d < channels_; ++d)
      for (int t = 0; t < order; ++t) to[d] += static_cast<float>(wide.at({d, t}));
    grads.b = b;
    return grads;
  }

 private:
  static Tensor flat(const Tensor& x) { return x.reshape({x.size(0), x.size(1) * x.size(2)}); }

  const Group& group_;
  std::string impl_;
  std::int64_t channels_;
  kernels::EqLinearOptions options_;
  Tensor weight_, bias_;
  kernels::PackedWeight packed_;
  kernels::EqPlanes planes_;
};

/// Times of the three layers in alternating rounds.
struct Timing {
  std::vector<double> rounds;
};

std::array<Timing, 3> time_rounds(const BenchOpOptions& options,
                                  const std::array<std::function<void()>, 3>& calls) {
  std::array<Timing, 3> timings;
  std::array<int, 3> repeats{};
  for (std::size_t i = 0; i < 3; ++i) {
    calls[i]();
    const auto start = Clock::now();
    calls[i]();
    repeats[i] = static_cast<int>(
        std::clamp(1e3 * options.seconds / std::max(1e-3, milliseconds_since(start)), 1.0, 1e6));
  }
  for (int round = 0; round < options.rounds; ++round)
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t i = (k + static_cast<std::size_t>(round)) % 3;
      const auto start = Clock::now();
      for (int repeat = 0; repeat < repeats[i]; ++repeat) calls[i]();
      timings[i].rounds.push_back(milliseconds_since(start) / repeats[i]);
    }
  return timings;
}

double ratio(const Timing& other, const Timing& own) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < own.rounds.size(); ++i) ratios.push_back(other.rounds[i] / own.rounds[i]);
  return median(std::move(ratios));
}

}  // namespace

BenchOpResult bench_op(const BenchOpOptions& options) {
  require<ValueError>(options.rows >= 1 && options.rounds >= 1 && options.seconds > 0,
                      "bench op: rows, rounds and seconds must be positive");
  const Group& group = Group::get(options.group);
  const int order = group.order();
  BenchOpResult result{this_machine(), measure_peak_gflops(), options.group, options.rows, {}};
  for (const std::int64_t channels : options.channels) {
    require<ValueError>(channels >= 1, "bench op: {} channels, at least 1 is needed", channels);
    RandomStream stream(0, Purpose::test, static_cast<std::uint64_t>(channels));
    const double spread = 1 / std::sqrt(static_cast<double>(channels * order));
    const Tensor x = random_normal({options.rows, channels, order}, 1, stream);
    const Tensor dy = random_normal({options.rows, channels, order}, 1, stream);
    const Tensor w = random_normal({channels, channels, order}, spread, stream);
    const Tensor b = random_normal({channels}, spread, stream);

    const std::int64_t few = std::min(checked_rows, options.rows);
    const Tensor few_x = x.slice(0, 0, few), few_dy = dy.slice(0, 0, few);
    const auto exact = [](const Tensor& t) { return t.to(DType::f64); };
    const kernels::EqLinearOptions plain{EqBackend::flash, 0};
    const Tensor true_y = kernels::eq_linear_forward(group, exact(few_x), exact(w), exact(b), plain);
    const LinearGrads true_grads =
        kernels::eq_linear_backward(group, exact(few_x), exact(w), exact(few_dy), true, true, true, plain);

    std::array<Layer, 3> layers{Layer(group, "standard", channels, 0, w, b),
                                Layer(group, "naive", channels, 0, w, b),
                                Layer(group, "flash", channels, options.products, w, b)};
    for (const bool backward : {false, true}) {
      std::array<std::function<void()>, 3> calls;
      for (std::size_t i = 0; i < 3; ++i)
        calls[i] = backward ? std::function<void()>([&layer = layers[i], &x, &dy] { layer.backward(x, dy); })
                            : std::function<void()>([&layer = layers[i], &x] { layer.forward(x); });
      const auto timings = time_rounds(options, calls);
      for (std::size_t i = 0; i < 3; ++i) {
        BenchOpRow row;
        row.impl = layers[i].impl();
        row.kernel = layers[i].kernel(options.rows);
        row.direction = backward ? "backward" : "forward";
        row.channels = channels;
        row.ms_median = median(timings[i].rounds);
        row.ms_min = *std::min_element(timings[i].rounds.begin(), timings[i].rounds.end());
        row.ms_max = *std::max_element(timings[i].rounds.begin(), timings[i].rounds.end());
        row.gflops = (backward ? 2 : 1) * layers[i].flops(options.rows) / row.ms_median / 1e6;
        row.peak_fraction = row.gflops / result.peak_gflops;
        row.ratio_to_standard = ratio(timings[0], timings[i]);
        if (backward) {
          const LinearGrads grads = layers[i].comparable(layers[i].backward(few_x, few_dy));
          row.rel_l2 = std::max(
              {rel_l2(grads.x, true_grads.x), rel_l2(grads.w, true_grads.w), rel_l2(grads.b, true_grads.b)});
        } else {
          row.rel_l2 = rel_l2(layers[i].forward(few_x), true_y);
        }
        result.results.push_back(std::move(row));
      }
    }
  }
  return result;
}

}  // namespace gyre
