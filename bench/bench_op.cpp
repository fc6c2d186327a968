#include "bench/bench_op.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "bench/peak.h"
#include "core/random.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::LinearGrads;

constexpr std::int64_t checked_rows = 256;  // of Y, whose error does not depend on the number of rows

double rel_l2(const Tensor& out, const Tensor& reference) {
  if (!out.defined()) return std::numeric_limits<double>::quiet_NaN();
  const auto a = out.to_vector(), b = reference.to_vector();
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(error / std::max(norm, 1e-300));
}

/// One width in all implementations: the same every time it is made.
class Case {
 public:
  Case(const Group& group, std::int64_t channels, const BenchOpOptions& options) : group_(group) {
    RandomStream stream(0, Purpose::test, static_cast<std::uint64_t>(channels));
    const double spread = 1 / std::sqrt(static_cast<double>(channels * group.order()));
    x_ = random_normal({options.rows, channels, group.order()}, 1, stream);
    dy_ = random_normal({options.rows, channels, group.order()}, 1, stream);
    w_ = random_normal({channels, channels, group.order()}, spread, stream);
    b_ = random_normal({channels}, spread, stream);
    const int products = products_of(group, options.products);
    layers_.push_back(std::make_unique<OpLayer>(group, "standard", 0, w_, b_));
    for (const std::string& impl : options.impls)
      layers_.push_back(std::make_unique<OpLayer>(group, impl, products, w_, b_));
  }

  const std::vector<std::unique_ptr<OpLayer>>& layers() const { return layers_; }

  void call(OpLayer& layer, OpDirection direction) {
    if (direction == OpDirection::forward)
      layer.forward(x_);
    else
      layer.backward(x_, dy_, direction);
  }

  /// Fills the errors of each layer's row.
  void check(OpDirection direction, std::span<BenchOpRow> rows) {
    const kernels::EqLinearOptions plain{kernels::EqBackend::flash, group_.plain_form().products()};
    const auto exact = [](const Tensor& t) { return t.to(DType::f64); };
    Tensor y;
    LinearGrads truth;
    const bool forward = direction == OpDirection::forward, dw = direction != OpDirection::dx,
               dx = direction != OpDirection::dw;
    const Tensor few = x_.slice(0, 0, std::min(checked_rows, x_.size(0)));
    if (forward)
      y = kernels::eq_linear_forward(group_, exact(few), exact(w_), exact(b_), plain);
    else
      truth = kernels::eq_linear_backward(group_, exact(x_), exact(w_), exact(dy_), dx, dw, dw, plain);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      OpLayer& layer = *layers_[i];
      const LinearGrads grads = forward ? LinearGrads() : layer.folded(layer.backward(x_, dy_, direction));
      // Of all rows: for few, another kernel may be taken.
      rows[i].rel_l2_y = rel_l2(forward ? layer.forward(x_).slice(0, 0, few.size(0)) : Tensor(), y);
      rows[i].rel_l2_dx = rel_l2(grads.x, truth.x);
      rows[i].rel_l2_dw = rel_l2(grads.w, truth.w);
      rows[i].rel_l2_db = rel_l2(grads.b, truth.b);
    }
  }

 private:
  const Group& group_;
  Tensor x_, dy_, w_, b_;
  std::vector<std::unique_ptr<OpLayer>> layers_;
};

/// The rows of one width and direction, one per implementation, with what was measured so far.
struct Measured {
  const Group* group;
  std::int64_t channels;
  OpDirection direction;
  std::vector<Runs> runs;
  std::vector<BenchOpRow> rows;
};

/// Milliseconds of one call, from as many calls as fill `seconds`.
std::function<double()> timer(const std::function<void()>& call, double seconds) {
  call();  // packs weights and fills the pool
  const auto start = Clock::now();
  call();
  const double once = std::max(1e-3, milliseconds_since(start));
  const int repeats = static_cast<int>(std::clamp(1e3 * seconds / once, 1.0, 1e6));
  return [call, repeats] {
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) call();
    return milliseconds_since(begin) / repeats;
  };
}

void measure(Case& width, Measured& measured, const BenchOpOptions& options) {
  std::vector<std::function<double()>> timers;
  for (const auto& layer : width.layers())
    timers.push_back(timer([&] { width.call(*layer, measured.direction); }, options.seconds));
  measured.runs.resize(timers.size());
  run_alternating(options.rounds, timers, measured.runs);
}

void describe(Case& width, Measured& measured, std::int64_t row_count) {
  for (const auto& layer : width.layers()) {
    BenchOpRow row;
    row.group = measured.group->name();
    row.impl = layer->impl();
    row.kernel = layer->kernel(measured.direction, row_count);
    row.direction = measured.direction;
    row.channels = measured.channels;
    row.gflops = layer->flops(measured.direction, row_count) / 1e6;  // until the time is known
    measured.rows.push_back(std::move(row));
  }
  width.check(measured.direction, measured.rows);
}

void finish(Measured& measured, double peak_gflops) {
  for (std::size_t i = 0; i < measured.rows.size(); ++i) {
    BenchOpRow& row = measured.rows[i];
    row.ms = summarise(measured.runs[i]);
    row.gflops /= row.ms.median;
    row.peak_fraction = row.gflops / peak_gflops;
    row.to_standard = ratio_of(measured.runs[0], measured.runs[i]);
  }
}

}  // namespace

double BenchOpRow::rel_l2() const {
  return std::fmax(std::fmax(rel_l2_y, rel_l2_dx), std::fmax(rel_l2_dw, rel_l2_db));
}

int products_of(const Group& group, int products) {
  const int fewest = group.fewest_form().products(), plain = group.plain_form().products();
  if (products == plain_products) return plain;
  require<ValueError>(products == 0 || products == fewest || products == plain,
                      "{} is not one of 0, {}, {} of group {}", products, fewest, plain, group.name());
  return products == 0 ? fewest : products;
}

BenchOpResult bench_op(const BenchOpOptions& options) {
  require<ValueError>(options.rows >= 1 && options.runs >= 1 && options.rounds >= 1 && options.seconds > 0,
                      "bench op: rows, runs, rounds and seconds must be positive");
  std::vector<Measured> all;
  for (const std::string& name : options.groups) {
    const Group& group = Group::get(name);
    products_of(group, options.products);
    for (const std::int64_t channels : options.channels) {
      require<ValueError>(channels >= 1, "bench op: {} channels, at least 1 is needed", channels);
      for (const OpDirection direction : options.directions)
        all.push_back({&group, channels, direction, {}, {}});
    }
  }
  BenchOpResult result{this_machine(), options.rows, options.runs, {}};
  for (int run = 0; run < options.runs; ++run) {
    std::unique_ptr<Case> width;
    const Measured* made_for = nullptr;
    for (Measured& measured : all) {
      if (!made_for || made_for->group != measured.group || made_for->channels != measured.channels) {
        width.reset();  // its memory serves the next
        width = std::make_unique<Case>(*measured.group, measured.channels, options);
        made_for = &measured;
      }
      if (run == 0) describe(*width, measured, options.rows);
      measure(*width, measured, options);
    }
  }
  // Once more, lest something else held a core at the start.
  result.machine.peak_gflops = std::max(result.machine.peak_gflops, measure_peak_gflops());
  for (Measured& measured : all) {
    finish(measured, result.machine.peak_gflops);
    for (BenchOpRow& row : measured.rows) result.results.push_back(std::move(row));
  }
  return result;
}

}  // namespace gyre
