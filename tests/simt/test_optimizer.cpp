#include <memory>

#include "kernels/cuda/optimizer_launch.h"
#include "tests/simt/kernel_test.h"

namespace gyre::simt {
namespace {

namespace cuda = kernels::cuda;

/// Lists of arrays with the launcher's view of them; offsets move some starts off the 16-byte boundary.
template <class T>
struct Lists {
  std::vector<std::unique_ptr<Buffer<T>>> p, g, m, v;
  std::vector<cuda::UpdateItem<T>> items;

  Lists(const std::vector<std::int64_t>& counts, bool has_m, bool has_v) {
    std::uint64_t seed = 10;
    for (const std::int64_t count : counts) {
      const std::size_t offset = items.size() % 3 == 2 ? 1 : 0;
      const auto add = [&](std::vector<std::unique_ptr<Buffer<T>>>& list, bool square) {
        auto values = normal_values<T>(count, ++seed);
        if (square)
          for (T& value : values) value *= value;
        list.push_back(std::make_unique<Buffer<T>>(values, offset));
        return list.back()->data();
      };
      cuda::UpdateItem<T> item;
      item.p = add(p, false);
      item.g = add(g, false);
      if (has_m) item.m = add(m, false);
      if (has_v) item.v = add(v, true);
      item.count = count;
      items.push_back(item);
    }
  }
  std::int64_t size() const { return static_cast<std::int64_t>(items.size()); }
};

/// What update(p, g, m, v) makes of every element must be found after launch(lists).
template <class T, class Update, class Launch>
void check(const std::vector<std::int64_t>& counts, bool has_m, bool has_v, Update update, Launch launch) {
  Lists<T> lists(counts, has_m, has_v);
  std::vector<std::vector<double>> p, m, v;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    p.push_back(widened(lists.p[i]->values()));
    m.push_back(has_m ? widened(lists.m[i]->values()) : std::vector<double>(p[i].size()));
    v.push_back(has_v ? widened(lists.v[i]->values()) : std::vector<double>(p[i].size()));
    const std::vector<double> g = widened(lists.g[i]->values());
    for (std::size_t j = 0; j < g.size(); ++j) update(p[i][j], g[j], m[i][j], v[i][j]);
  }
  launch(lists);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    SCOPED_TRACE(fmt::format("array {} of {}", i, counts[i]));
    expect_close(lists.p[i]->values(), p[i], 1, 32);
    if (has_m) expect_close(lists.m[i]->values(), m[i], 1, 32);
    if (has_v) expect_close(lists.v[i]->values(), v[i], 1, 32);
  }
}

const std::vector<std::int64_t> mixed{5, 0, 64, 4096, 4097, 1, 0};

template <class T>
void check_adamw(const std::vector<std::int64_t>& counts) {
  const cuda::AdamWFactors f{0.99, 0.9, 0.999, 0.01, 1.5, 1e-8, 0.5};
  check<T>(
      counts, true, true,
      [&](double& p, double g, double& m, double& v) {
        g *= f.grad_scale;
        m = f.beta1 * m + (1 - f.beta1) * g;
        v = f.beta2 * v + (1 - f.beta2) * g * g;
        p = f.decay * p - f.step_size * m / (std::sqrt(v) * f.inverse_correction + f.eps);
      },
      [&](Lists<T>& lists) { cuda::launch_adamw(lists.items.data(), lists.size(), f, nullptr); });
}

TEST(OptimizerKernels, AdamW) {
  in_all_schedules([] {
    check_adamw<float>(mixed);
    check_adamw<double>(mixed);
  });
}

TEST(OptimizerKernels, ListsOfAnyLength) {
  for (const std::size_t length : {80, 81, 640, 641, 1300})
    check_adamw<float>(std::vector<std::int64_t>(length, 3));
}

TEST(OptimizerKernels, Sgd) {
  in_all_schedules([] {
    for (const double momentum : {0.0, 0.9})
      for (const bool nesterov : {false, true}) {
        if (nesterov && momentum == 0) continue;
        const cuda::SgdFactors f{0.1, momentum, 0.02, 0.5, nesterov};
        const auto update = [&](double& p, double g, double& m, double&) {
          g = g * f.grad_scale + f.weight_decay * p;
          m = f.momentum * m + g;
          p -= f.lr * (f.nesterov ? g + f.momentum * m : m);
        };
        const auto launch = [&](auto& lists) {
          cuda::launch_sgd(lists.items.data(), lists.size(), f, nullptr);
        };
        check<float>(mixed, momentum > 0, false, update, launch);
        check<double>(mixed, momentum > 0, false, update, launch);
      }
  });
}

TEST(OptimizerKernels, Lerp) {
  in_all_schedules([] {
    const auto update = [](double& p, double g, double&, double&) { p += 0.25 * (g - p); };
    const auto launch = [](auto& lists) {
      cuda::launch_lerp(lists.items.data(), lists.size(), 0.25, nullptr);
    };
    check<float>(mixed, false, false, update, launch);
    check<double>(mixed, false, false, update, launch);
  });
}

template <class T>
void check_sum_squares(const std::vector<std::int64_t>& counts) {
  Lists<T> lists(counts, false, false);
  long double wanted = 0;
  for (const auto& g : lists.g)
    for (const double value : widened(g->values())) wanted += static_cast<long double>(value) * value;
  auto workspace = Buffer<double>::output(
      static_cast<std::size_t>(cuda::sum_squares_workspace(lists.items.data(), lists.size())));
  auto result = Buffer<double>::output(1);
  cuda::launch_sum_squares(lists.items.data(), lists.size(), workspace.data(), result.data(), nullptr);
  EXPECT_NEAR(result.values()[0], static_cast<double>(wanted), 1e-13 * static_cast<double>(wanted));
}

#ifndef GYRE_TEST_GPU
TEST(OptimizerKernels, TakeAWholeModelInOneLaunch) {
  Lists<float> lists(std::vector<std::int64_t>(640, 3), true, true);
  const auto* const items = lists.items.data();
  const auto launches_of = [](auto run) {
    const std::uint64_t before = launches();
    run();
    return launches() - before;
  };
  EXPECT_EQ(launches_of([&] {
              cuda::launch_adamw(items, lists.size(), {1, 0.9, 0.999, 0.1, 1, 1e-8, 1}, nullptr);
            }),
            1u);
  EXPECT_EQ(launches_of([&] { cuda::launch_sgd(items, lists.size(), {0.1, 0.9, 0, 1, true}, nullptr); }), 1u);
  EXPECT_EQ(launches_of([&] { cuda::launch_lerp(items, lists.size(), 0.1, nullptr); }), 1u);
  auto workspace =
      Buffer<double>::output(static_cast<std::size_t>(cuda::sum_squares_workspace(items, lists.size())));
  auto sum = Buffer<double>::output(1);
  EXPECT_EQ(launches_of([&] {
              cuda::launch_sum_squares(items, lists.size(), workspace.data(), sum.data(), nullptr);
            }),
            2u)
      << "parts, then their sum";
}
#endif

TEST(OptimizerKernels, SumOfSquares) {
  in_all_schedules([] {
    check_sum_squares<float>(mixed);
    check_sum_squares<double>(mixed);
    check_sum_squares<float>({0, 0});
  });
  check_sum_squares<float>(std::vector<std::int64_t>(700, 5));
}

}  // namespace
}  // namespace gyre::simt
