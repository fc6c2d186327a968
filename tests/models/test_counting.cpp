#include "models/counting.h"

#include "tests/models/model_testing.h"

namespace gyre {
namespace {

/// Tables of the Flash EQ-Linear paper (arXiv 2607.21271): parameters in millions, FLOPs in 1e9, three
/// decimals; linear 0 where the paper has none. Its EQ-Swin, which leaves norms untied, has more parameters:
/// those here are of tied norms.
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
  if (GetParam().linear > 0) {
    EXPECT_NEAR(static_cast<double>(counts.linear_flops) / 1e9, GetParam().linear, half_digit);
  }
  EXPECT_NEAR(static_cast<double>(counts.total_flops) / 1e9, GetParam().total, half_digit);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, PaperTable,
    ::testing::Values(Row{"vit_t", 21.704, 8.374, 9.205}, Row{"vit_s", 33.766, 13.082, 14.121},
                      Row{"vit_b", 85.876, 33.481, 35.143}, Row{"vit_l", 303.404, 119.028, 123.151},
                      Row{"vit_h", 631.047, 247.956, 254.700}, Row{"eq_vit_t", 5.412, 3.187, 4.018},
                      Row{"eq_vit_s", 8.424, 4.964, 6.003}, Row{"eq_vit_b", 21.441, 12.648, 14.310},
                      Row{"eq_vit_l", 75.813, 44.883, 49.006}, Row{"eq_vit_h", 157.715, 93.396, 100.140},
                      Row{"swin_t", 27.596, 8.683, 8.993}, Row{"swin_s", 48.914, 17.015, 17.501},
                      Row{"swin_b", 86.846, 30.240, 30.888}, Row{"swin_l", 195.149, 68.018, 68.991},
                      Row{"swin_h", 655.143, 228.553, 230.335}, Row{"eq_swin_t_w7", 6.916, 0, 3.855},
                      Row{"eq_swin_s_w7", 12.264, 0, 7.203}, Row{"eq_swin_b_w7", 21.759, 0, 12.533},
                      Row{"eq_swin_l_w7", 48.858, 0, 27.585}, Row{"eq_swin_h_w7", 163.916, 0, 90.841}),
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

TEST(Counting, SwinParametersAreThoseOfTheModel) {
  for (const char* name : {"swin", "eq_swin"}) {
    for (const char* group : {"c1", "c2", "mirror", "c4", "d4"}) {
      if (name == std::string("swin") && group != std::string("c1")) continue;
      ModelConfig config = testing::small_swin(name, group);
      config.depths = {2, 3, 1};
      config.image_size = 32;
      EXPECT_EQ(count_model(config).parameters, make_model(config, 1)->parameter_count())
          << name << " " << group;
    }
  }
}

TEST(Counting, MergingRunsBelowThePaper) {
  ModelConfig config;
  config.name = "eq_swin_t_w7";
  const ModelCounts counts = count_model(config);
  EXPECT_LT(static_cast<double>(counts.executed_flops), 0.9 * static_cast<double>(counts.total_flops));
  // Six products instead of five, as in the paper: what is left is patch embedding and merging.
  config.products = 6;
  EXPECT_LT(count_model(config).executed_flops, counts.total_flops);
  EXPECT_FALSE(counts.exact);
  config.name = "eq_swin_t";
  config.products = 0;
  EXPECT_TRUE(count_model(config).exact);
  // Larger windows see more tokens; the linear layers are the same.
  EXPECT_EQ(count_model(config).linear_flops, counts.linear_flops);
  EXPECT_GT(count_model(config).total_flops, counts.total_flops);
}

TEST(Counting, OrdinarySwinRunsWhatThePaperCounts) {
  ModelConfig config;
  config.name = "swin_t";
  const ModelCounts counts = count_model(config);
  EXPECT_EQ(counts.executed_flops - counts.total_flops, 56 * 56 * 96);  // bias of the patch embedding
  EXPECT_FALSE(counts.exact);
}

TEST(Counting, NaiveCostsWhatTheOrdinaryModelCosts) {
  ModelConfig plain, naive;
  plain.name = "vit_t";
  naive.name = "eq_vit_t";
  naive.backend = "naive";
  // But for the head, which reads a quarter of the channels.
  EXPECT_EQ(count_model(plain).linear_flops - count_model(naive).linear_flops, 2 * (384 - 96) * 100);
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
