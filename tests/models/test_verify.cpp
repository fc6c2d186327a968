#include "models/verify.h"

#include <algorithm>
#include <limits>
#include <set>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduction.h"
#include "layers/patch_embed.h"
#include "tests/models/model_testing.h"

namespace gyre {
namespace {

using testing::small_config;

std::vector<EquivarianceRow> rows_of(const VerifyResult& result, std::string_view scope, DType dtype) {
  std::vector<EquivarianceRow> rows;
  for (const EquivarianceRow& row : result.equivariance)
    if (row.scope == scope && row.dtype == dtype) rows.push_back(row);
  return rows;
}

std::vector<std::string> elements_of(const std::vector<EquivarianceRow>& rows) {
  std::vector<std::string> names;
  for (const EquivarianceRow& row : rows) names.push_back(row.element);
  return names;
}

TEST(TensorError, MeasuresByHand) {
  const Tensor reference = Tensor::from({3.0, -4.0, 0.05, 0.0}, {4});
  const Tensor value = Tensor::from({3.3, -4.4, 0.05, 0.4}, {4});
  const TensorError error = tensor_error(value, reference, 0.1);
  EXPECT_NEAR(error.rel_l2, std::sqrt((0.09 + 0.16 + 0.16) / (25 + 0.0025)), 1e-12);
  EXPECT_NEAR(error.max_abs, 0.4, 1e-12);
  EXPECT_NEAR(error.mean_abs, 1.1 / 4, 1e-12);
  EXPECT_NEAR(error.p99_rel, 0.1, 1e-12);  // the last element lies below the floor
}

TEST(TensorError, PercentileLeavesOneInAHundred) {
  std::vector<double> reference(200, 1.0), value(200, 1.0 + 1e-3);
  value[7] = 9;
  value[150] = -9;
  const Tensor b = Tensor::from(reference, {200});
  EXPECT_NEAR(tensor_error(Tensor::from(value, {200}), b, 0.1).p99_rel, 1e-3, 1e-12);
  value[3] = 5;
  EXPECT_NEAR(tensor_error(Tensor::from(value, {200}), b, 0.1).p99_rel, 4, 1e-12);
}

TEST(TensorError, ZeroReferenceAndNonFiniteValuesNeverPass) {
  const Tensor zero = Tensor::zeros({3});
  EXPECT_EQ(tensor_error(zero, zero, 0.1).rel_l2, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(tensor_error(zero, zero, 0.1).p99_rel));
  const Tensor broken = Tensor::from({1.0, std::numeric_limits<double>::quiet_NaN()}, {2});
  EXPECT_EQ(tensor_error(broken, Tensor::ones({2}, DType::f64), 0.1).rel_l2,
            std::numeric_limits<double>::infinity());
}

TEST(ElementName, TurnsAndMirrors) {
  EXPECT_EQ(element_name(0), "none");
  EXPECT_EQ(element_name(3), "turn 270");
  EXPECT_EQ(element_name(4), "mirror");
  EXPECT_EQ(element_name(5), "mirror, turn 90");
}

struct Flavour {
  const char* group;
  const char* pool;
  const char* pos_embed;
};

class VerifyExact : public ::testing::TestWithParam<Flavour> {};

TEST_P(VerifyExact, PassesWithARowPerKindAndElement) {
  const Flavour& flavour = GetParam();
  const auto model = make_model(small_config("eq_vit", flavour.group, flavour.pool, flavour.pos_embed), 3);
  std::vector<double> told;
  VerifyOptions options;
  options.samples = 2;
  options.progress = [&](std::string_view, double fraction) { told.push_back(fraction); };
  const VerifyResult result = verify_model(*model, options);
  const Group& group = Group::get(flavour.group);
  EXPECT_TRUE(result.pass());
  EXPECT_EQ(result.group, flavour.group);
  EXPECT_EQ(result.samples, 2);
  EXPECT_EQ(result.layers, 9);  // patch embedding, and four of the first and four of the last block

  ASSERT_EQ(result.exactness.size(), 8u);
  std::set<std::string> tensors;
  for (const ExactnessRow& row : result.exactness) {
    tensors.insert(row.tensor + fmt::format(" {}", row.dtype));
    EXPECT_LE(row.error.rel_l2, exactness_mark(row.dtype)) << row.tensor << " " << row.layer;
    EXPECT_GE(row.error.max_abs, row.error.mean_abs);
  }
  EXPECT_EQ(tensors.size(), 8u);

  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::size_t elements = static_cast<std::size_t>(std::max(1, group.order() - 1));
    for (const char* scope : {"EqPatchEmbed", "EqPositionTable", "EqLayerNorm", "EqLinear", "EqAttention",
                              "EqMlp", "EqBlock", "model"}) {
      const auto rows = rows_of(result, scope, dtype);
      EXPECT_EQ(rows.size(), elements) << scope;
      for (const EquivarianceRow& row : rows) {
        EXPECT_LE(row.nmae, equivariance_mark(scope, dtype)) << scope << " " << row.element;
        EXPECT_TRUE(std::isfinite(row.rel_l2));
      }
    }
    const auto outside = rows_of(result, "outside", dtype);
    EXPECT_EQ(outside.size(), static_cast<std::size_t>(std::max(1, 8 - group.order())));
    for (const EquivarianceRow& row : outside) EXPECT_GE(row.nmae, outside_mark) << row.element;
  }
  EXPECT_TRUE(std::is_sorted(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(told.size() / 2)));
  EXPECT_EQ(model->parameters().front().parameter->variable.dtype(), DType::f64);
  EXPECT_FALSE(model->training());
}

INSTANTIATE_TEST_SUITE_P(Flavours, VerifyExact,
                         ::testing::Values(Flavour{"c2", "token", "full"},
                                           Flavour{"mirror", "mean", "quarter"},
                                           Flavour{"c4", "token", "quarter"}, Flavour{"c4", "mean", "full"},
                                           Flavour{"d4", "token", "full"}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", test.param.group, test.param.pool,
                                              test.param.pos_embed);
                         });

TEST(Verify, NamesTheElementsOfTheGroupAndThoseOutside) {
  const auto model = make_model(small_config("eq_vit", "c4"), 1);
  const VerifyResult result = verify_model(*model, {.samples = 1});
  EXPECT_EQ(elements_of(rows_of(result, "model", DType::f64)),
            (std::vector<std::string>{"turn 90", "turn 180", "turn 270"}));
  EXPECT_EQ(elements_of(rows_of(result, "outside", DType::f64)),
            (std::vector<std::string>{"mirror", "mirror, turn 90", "mirror, turn 180", "mirror, turn 270"}));
  const auto d4 = make_model(small_config("eq_vit", "d4"), 1);
  EXPECT_EQ(elements_of(rows_of(verify_model(*d4, {.samples = 1}), "outside", DType::f32)),
            std::vector<std::string>{"shift by a pixel"});
}

TEST(Verify, SwinPassesWhereItsWindowsAreExact) {
  for (const char* group : {"c4", "d4"}) {
    const auto model = make_model(testing::small_swin("eq_swin", group), 1);
    const VerifyResult result = verify_model(*model, {.samples = 1});
    EXPECT_TRUE(result.pass()) << group;
    for (const char* scope : {"EqWindowAttention", "EqPatchMerging", "EqBlock", "EqLinear", "EqLayerNorm"})
      EXPECT_FALSE(rows_of(result, scope, DType::f64).empty()) << scope;
  }
}

TEST(Verify, WindowsThatBreakTheSymmetryAreFound) {
  ModelConfig config = testing::small_swin("eq_swin", "c4");
  config.window = 3;  // moved by 1, not by half
  config.image_size = 24;
  config.approximate = true;
  const auto model = make_model(config, 1);
  const VerifyResult result = verify_model(*model, {.samples = 1});
  EXPECT_FALSE(result.pass());
  for (const EquivarianceRow& row : result.equivariance) {
    const bool broken = row.scope == "model" || row.scope == "EqWindowAttention" || row.scope == "EqBlock";
    EXPECT_EQ(row.pass, !broken) << row.scope << " " << row.element;
    EXPECT_TRUE(row.scope != "model" || row.nmae > 1e-4) << row.nmae;
  }
}

TEST(Verify, PlainModelFailsUnderQuarterTurns) {
  const auto model = make_model(small_config("vit", "c1"), 1);
  const VerifyResult result = verify_model(*model, {.samples = 2});
  EXPECT_FALSE(result.pass());
  EXPECT_TRUE(result.exactness.empty());
  const auto rows = rows_of(result, "model", DType::f32);
  ASSERT_EQ(rows.size(), 3u);
  for (const EquivarianceRow& row : rows) {
    EXPECT_FALSE(row.pass);
    EXPECT_GT(row.nmae, 0.01);
  }
}

TEST(Verify, DeadModelsFail) {
  // Zero weights: nothing changes under any element, and every output is zero.
  const auto model = make_model(small_config("eq_vit", "c4"), 1);
  for (const auto& [name, parameter] : model->parameters()) {
    Tensor data = parameter->variable.data();
    data.zero_();
  }
  const VerifyResult result = verify_model(*model, {.samples = 1});
  EXPECT_FALSE(result.pass());
  for (const EquivarianceRow& row : result.equivariance)
    EXPECT_FALSE(row.pass) << row.scope << " " << row.element;
  for (const ExactnessRow& row : result.exactness)
    EXPECT_EQ(row.pass, row.tensor == "db") << row.tensor << " " << row.layer;
}

/// Adds to each token something that depends on its place alone.
class EqTilt : public Module {
 public:
  Variable forward(const Variable& x) override {
    const Tensor ramp = Tensor::arange(x.size(1)).to(x.dtype()).reshape({1, x.size(1), 1});
    return x + affine(Variable(ramp), 1e-2);
  }
  std::string_view kind() const override { return "EqTilt"; }
};

class TiltedModel : public Model {
 public:
  explicit TiltedModel(const ModelConfig& config) : Model(config) {
    RandomStream stream = testing::init_stream();
    const Group& group = group_of(config);
    embed_ = &add<EqPatchEmbed>("embed", group,
                                PatchConfig{config.in_channels, config.image_size, config.patch_size},
                                config.width / group.order(), stream);
    tilt_ = &add<EqTilt>("tilt");
  }
  Variable forward(const Variable& images) override {
    return sum(mean(gelu((*tilt_)((*embed_)(images))), {1}), {1}, true);
  }
  std::string_view kind() const override { return "TiltedModel"; }

 private:
  Module* embed_;
  Module* tilt_;
};

TEST(Verify, FindsTheLayerThatBreaksTheSymmetry) {
  TiltedModel model(small_config("eq_vit", "c4"));
  const VerifyResult result = verify_model(model, {.samples = 2});
  EXPECT_FALSE(result.pass());
  for (const EquivarianceRow& row : result.equivariance)
    EXPECT_EQ(row.pass, row.scope == "EqPatchEmbed" || row.scope == "outside") << row.scope << row.element;
}

TEST(Verify, RestoresTheBackendOfEachLayer) {
  ModelConfig config = small_config("eq_vit", "c4");
  config.backend = "naive";
  const auto model = make_model(config, 1);
  verify_model(*model, {.samples = 1});
  EXPECT_EQ(model->kernel_names(), std::vector<std::string>{"naive_eigen"});
}

}  // namespace
}  // namespace gyre
