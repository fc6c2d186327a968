#include "models/counting.h"

#include "models/registry.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

/// Tables of the Flash EQ-Linear paper (arXiv 2607.21271): parameters in millions, FLOPs in 1e9, three
/// decimals.
struct Row {
  const char* name;
  double parameters, linear, total;
};

class PaperTable : public ::testing::TestWithParam<Row> {};

TEST_P(PaperTable, IsReproducedToThePrintedDigit) {
  ModelConfig config;
  config.name = GetParam().name;
  const ModelCounts counts = count_model(config);
  constexpr double half_digit = 0.0005 + 1e-9;
  EXPECT_NEAR(static_cast<double>(counts.parameters) / 1e6, GetParam().parameters, half_digit);
  EXPECT_NEAR(static_cast<double>(counts.linear_flops) / 1e9, GetParam().linear, half_digit);
  EXPECT_NEAR(static_cast<double>(counts.total_flops) / 1e9, GetParam().total, half_digit);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, PaperTable,
    ::testing::Values(Row{"vit_t", 21.704, 8.374, 9.205}, Row{"vit_s", 33.766, 13.082, 14.121},
                      Row{"vit_b", 85.876, 33.481, 35.143}, Row{"vit_l", 303.404, 119.028, 123.151},
                      Row{"vit_h", 631.047, 247.956, 254.700}, Row{"eq_vit_t", 5.412, 3.187, 4.018},
                      Row{"eq_vit_s", 8.424, 4.964, 6.003}, Row{"eq_vit_b", 21.441, 12.648, 14.310},
                      Row{"eq_vit_l", 75.813, 44.883, 49.006}, Row{"eq_vit_h", 157.715, 93.396, 100.140}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Counting, ParametersAreThoseOfTheModel) {
  int models = 0;
  for (const char* name : {"vit", "eq_vit"}) {
    for (const char* group : {"c1", "c2", "mirror", "c4", "d4"}) {
      for (const char* pool : {"mean", "token"}) {
        for (const char* positions : {"full", "quarter"}) {
          ModelConfig config;
          config.name = name;
          config.group = group;
          config.given = {"group"};
          config.pool = pool;
          config.pos_embed = positions;
          config.mlp_ratio = 1.5;
          config.in_channels = 3;
          if (config.name == "vit" && (config.group != "c1" || config.pos_embed == "quarter")) continue;
          EXPECT_EQ(count_model(config).parameters, make_model(config, 1)->parameter_count())
              << name << " " << group << " " << pool << " " << positions;
          ++models;
        }
      }
    }
  }
  EXPECT_EQ(models, 2 + 5 * 4);
}

TEST(Counting, NaiveCostsWhatTheOrdinaryModelCosts) {
  ModelConfig plain, naive;
  plain.name = "vit_t";
  naive.name = "eq_vit_t";
  naive.backend = "naive";
  EXPECT_EQ(count_model(naive).linear_flops, count_model(plain).linear_flops);
  ModelConfig flash = naive;
  flash.backend = "flash";
  EXPECT_LT(count_model(flash).executed_flops, count_model(naive).executed_flops);
}

TEST(Counting, ExecutedCountsTheProductsThatRun) {
  ModelConfig five;
  five.name = "eq_vit_b";
  five.backend = "flash";
  ModelConfig six = five;
  six.products = 6;
  const ModelCounts counts5 = count_model(five), counts6 = count_model(six);
  EXPECT_EQ(counts5.total_flops, counts6.total_flops);
  EXPECT_LT(counts5.executed_flops, counts6.executed_flops);
  EXPECT_LT(counts6.executed_flops, counts6.total_flops);  // the paper keeps the patch embedding dense
  // One product in six less, over all products of linear layers and patch embedding.
  const double products = 2.0 * (197 * 12 * (12 * 192 * 192) + 196 * 192 * 192);
  EXPECT_NEAR(static_cast<double>(counts6.executed_flops - counts5.executed_flops) / products, 1, 0.01);
}

TEST(Counting, OrdinaryModelRunsWhatThePaperCounts) {
  ModelConfig config;
  config.name = "vit_t";
  const ModelCounts counts = count_model(config);
  EXPECT_EQ(counts.executed_flops - counts.total_flops, 196 * 384);  // bias of the patch embedding
  EXPECT_FALSE(counts.exact);
  config.name = "eq_vit_t";
  EXPECT_TRUE(count_model(config).exact);
}

TEST(Counting, RefusesIllegalSizes) {
  ModelConfig config;
  config.patch_size = 7;
  EXPECT_THROW(count_model(config), ShapeError);
}

}  // namespace
}  // namespace gyre
