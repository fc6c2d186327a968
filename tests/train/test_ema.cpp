#include "train/ema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

class Pair : public Module {
 public:
  explicit Pair(DType dtype = DType::f64) {
    RandomStream stream(3, Purpose::test);
    a = &add_parameter("a", random_normal({3, 5}, 1, stream, dtype));
    b = &add_parameter("b", random_normal({4}, 1, stream, dtype));
  }
  Variable forward(const Variable& x) override { return x; }
  std::string_view kind() const override { return "Pair"; }
  /// Writes new weights in place, as an optimiser does.
  void move(std::uint64_t seed) {
    RandomStream stream(seed, Purpose::test, 1);
    for (Parameter* p : {a, b}) {
      Tensor data = p->variable.data();
      data.copy_(random_normal(data.shape(), 1, stream, data.dtype()));
    }
  }
  Parameter *a, *b;
};

TEST(Ema, FollowsTheClosedForm) {
  for (const double decay : {0.0, 0.3, 0.9999}) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      Pair module(dtype);
      Ema ema(module, decay);
      std::vector<std::vector<double>> weights = {module.a->variable.data().to_vector()};
      const int updates = 12;
      for (int i = 1; i <= updates; ++i) {
        module.move(static_cast<std::uint64_t>(i));
        ema.update();
        weights.push_back(module.a->variable.data().to_vector());
      }
      EXPECT_EQ(ema.updates(), updates);
      const auto decay_of = [&](int n) { return std::min(decay, (1.0 + n) / (10.0 + n)); };
      const auto average = ema.state().at("a").to_vector();
      for (std::size_t j = 0; j < average.size(); ++j) {
        // Σ over updates of what each kept, times what all later ones left of it.
        double expected = 0;
        for (int i = 0; i <= updates; ++i) {
          double share = i == 0 ? 1 : 1 - decay_of(i);
          for (int later = i + 1; later <= updates; ++later) share *= decay_of(later);
          expected += share * weights[static_cast<std::size_t>(i)][j];
        }
        EXPECT_NEAR(average[j], expected, dtype == DType::f64 ? 1e-14 : 1e-6) << decay;
      }
    }
  }
}

TEST(Ema, StartsAsACopyOfTheWeights) {
  Pair module;
  const Ema ema(module, 0.9);
  const auto before = module.a->variable.data().to_vector();
  EXPECT_EQ(ema.state().at("a").to_vector(), before);
  module.move(1);
  EXPECT_EQ(ema.state().at("a").to_vector(), before);
  EXPECT_EQ(ema.updates(), 0);
}

TEST(Ema, SwapExchangesStorages) {
  Pair module;
  Ema ema(module, 0.9);
  module.move(1);
  ema.update();
  const auto weights = module.a->variable.data().storage(), averages = ema.state().at("a").storage();
  const auto version = weights->version();
  ASSERT_NE(weights, averages);
  ema.swap();
  EXPECT_EQ(module.a->variable.data().storage(), averages);
  EXPECT_EQ(ema.state().at("a").storage(), averages);  // the averages, wherever they are
  ema.swap();
  EXPECT_EQ(module.a->variable.data().storage(), weights);
  EXPECT_EQ(ema.state().at("a").storage(), averages);
  EXPECT_EQ(weights->version(), version);  // nothing was written
}

TEST(Ema, ScopeRestoresTheWeightsAlsoAfterAnException) {
  Pair module;
  Ema ema(module, 0.9);
  const auto weights = module.b->variable.data().storage();
  try {
    const EmaScope scope(&ema);
    EXPECT_NE(module.b->variable.data().storage(), weights);
    throw ValueError("evaluation failed");
  } catch (const ValueError&) {
  }
  EXPECT_EQ(module.b->variable.data().storage(), weights);
  const EmaScope nothing(nullptr);
}

TEST(Ema, RefusesChangesWhileSwapped) {
  Pair module;
  Ema ema(module, 0.9);
  const TensorMap state = ema.state();
  ema.swap();
  const std::string tail = " while the averages are in the module: swap back first";
  EXPECT_EQ(test::error_of<Error>([&] { ema.update(); }), "EMA update" + tail);
  EXPECT_EQ(test::error_of<Error>([&] { ema.load_state(state, 1); }), "EMA load" + tail);
  EXPECT_EQ(ema.updates(), 0);
}

TEST(Ema, ContinuesFromItsState) {
  Pair module, other;
  Ema ema(module, 0.99), resumed(other, 0.99);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    module.move(i);
    ema.update();
  }
  resumed.load_state(ema.state(), ema.updates());
  EXPECT_EQ(resumed.updates(), 3);
  EXPECT_NE(resumed.state().at("a").storage(), ema.state().at("a").storage());
  for (Pair* each : {&module, &other}) each->move(4);
  ema.update();
  resumed.update();
  EXPECT_EQ(encode_safetensors(ema.state()), encode_safetensors(resumed.state()));
}

TEST(Ema, ErrorsChangeNothing) {
  Pair module;
  Ema ema(module, 0.9);
  const std::string before = encode_safetensors(ema.state());
  const TensorMap good{{"a", Tensor::ones({3, 5}, DType::f64)}, {"b", Tensor::ones({4}, DType::f64)}};
  const auto error = [&](TensorMap state, std::int64_t updates = 5) {
    const std::string text = test::error_of<Error>([&] { ema.load_state(state, updates); });
    EXPECT_EQ(encode_safetensors(ema.state()), before) << text;
    EXPECT_EQ(ema.updates(), 0);
    return text;
  };
  TensorMap bad = good;
  bad.erase("b");
  EXPECT_EQ(error(bad), "EMA state: tensor b is missing");
  bad = good;
  bad["c"] = bad["b"];
  EXPECT_EQ(error(bad), "EMA state: unknown tensor c");
  bad = good;
  bad["b"] = Tensor::ones({5});
  EXPECT_EQ(error(bad), "EMA state: tensor b has shape [5], not [4]");
  bad["b"] = Tensor::zeros({4}, DType::i64);
  EXPECT_EQ(error(bad), "EMA state: tensor b has type i64, which is not a floating type");
  EXPECT_EQ(error(good, -1), "EMA state: update count -1 is negative");
  ema.load_state(good, 5);
  EXPECT_NE(encode_safetensors(ema.state()), before);
  for (const double decay : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THROW(Ema(module, decay), ValueError);
  }
}

}  // namespace
}  // namespace gyre
