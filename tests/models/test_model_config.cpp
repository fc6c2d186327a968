#include "models/model_config.h"

#include "models/counting.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::Contains;
using testing::error_of;
using ::testing::HasSubstr;

ModelConfig named(const char* name) {
  ModelConfig config;
  config.name = name;
  return config;
}

TEST(ModelConfig, DefaultsAreValidForBothFamilies) {
  for (const char* name : {"vit", "eq_vit"}) {
    const ModelConfig config = resolve(named(name));
    EXPECT_NO_THROW(validate(config));
    EXPECT_EQ(config.width, 64);
    EXPECT_EQ(tokens_of(config), 16);
    EXPECT_EQ(hidden_of(config), 256);
  }
  EXPECT_EQ(group_of(resolve(named("vit"))).name(), "c1");
  EXPECT_EQ(resolve(named("vit")).group, "c1");
  EXPECT_EQ(group_of(resolve(named("eq_vit"))).name(), "c4");
}

TEST(ModelConfig, NamedSizesFillTheirNumbers) {
  struct Row {
    const char* suffix;
    std::int64_t width, depth, heads;
  };
  for (const Row& row : {Row{"t", 384, 12, 3}, Row{"s", 480, 12, 6}, Row{"b", 768, 12, 12},
                         Row{"l", 1024, 24, 16}, Row{"h", 1280, 32, 16}}) {
    for (const bool equivariant : {false, true}) {
      const std::string name = (equivariant ? "eq_vit_" : "vit_") + std::string(row.suffix);
      const ModelConfig config = resolve(named(name.c_str()));
      EXPECT_NO_THROW(validate(config)) << name;
      EXPECT_EQ(config.width, row.width);
      EXPECT_EQ(config.depth, row.depth);
      EXPECT_EQ(config.heads, row.heads);
      EXPECT_EQ(config.image_size, 224);
      EXPECT_EQ(config.in_channels, 3);
      EXPECT_EQ(config.patch_size, 16);
      EXPECT_EQ(config.classes, 100);
      EXPECT_EQ(config.pool, "token");
      EXPECT_EQ(config.pos_embed, equivariant ? "quarter" : "full");
      EXPECT_EQ(tokens_of(config), 197);
      EXPECT_EQ(is_equivariant(config), equivariant);
      EXPECT_THAT(model_names(), Contains(name));
    }
  }
}

TEST(ModelConfig, SwinSizesFillTheirNumbers) {
  struct Row {
    const char* suffix;
    std::int64_t width, third, heads;
  };
  for (const Row& row : {Row{"t", 96, 6, 3}, Row{"s", 96, 18, 3}, Row{"b", 128, 18, 4}, Row{"l", 192, 18, 6},
                         Row{"h", 352, 18, 11}}) {
    struct Kind {
      const char *family, *ending;
      std::int64_t window;
      bool exact;
    };
    for (const Kind& kind : {Kind{"swin", "", 7, false}, Kind{"swin", "_w14", 14, false},
                             Kind{"eq_swin", "", 14, true}, Kind{"eq_swin", "_w7", 7, false}}) {
      const std::string name = fmt::format("{}_{}{}", kind.family, row.suffix, kind.ending);
      const ModelConfig config = resolve(named(name.c_str()));
      EXPECT_NO_THROW(validate(config)) << name;
      EXPECT_EQ(family_of(name), kind.family);
      EXPECT_EQ(config.width, row.width);
      EXPECT_EQ(config.depths, (std::vector<std::int64_t>{2, 2, row.third, 2}));
      EXPECT_EQ(config.depth, 6 + row.third);
      EXPECT_EQ(config.heads, row.heads);
      EXPECT_EQ(config.window, kind.window);
      EXPECT_EQ(config.patch_size, 4);
      EXPECT_EQ(config.pos_embed, "none");
      EXPECT_EQ(config.pool, "mean");
      EXPECT_EQ(is_exact(config), kind.exact) << name;
      EXPECT_THAT(model_names(), Contains(name));
    }
  }
  ModelConfig eight = named("eq_swin_t");
  eight.image_size = 256;
  eight.window = 8;
  eight = resolve(eight);
  EXPECT_NO_THROW(validate(eight));
  EXPECT_TRUE(is_exact(eight));
}

TEST(ModelConfig, StagesHalveTheGridAndDoubleTheWidth) {
  const std::vector<Stage> stages = stages_of(resolve(named("eq_swin_t")));
  ASSERT_EQ(stages.size(), 4u);
  const std::int64_t windows[] = {14, 14, 14, 7}, shifts[] = {7, 7, 0, 0}, depths[] = {2, 2, 6, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stages[i].grid, 56 >> i);
    EXPECT_EQ(stages[i].width, 96 << i);
    EXPECT_EQ(stages[i].heads, 3 << i);
    EXPECT_EQ(stages[i].hidden, 384 << i);
    EXPECT_EQ(stages[i].depth, depths[i]);
    EXPECT_EQ(stages[i].window, windows[i]);
    EXPECT_EQ(stages[i].shift, shifts[i]);
  }
  const std::vector<Stage> one = stages_of(resolve(named("vit_t")));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].depth, 12);
  EXPECT_EQ(one[0].window, 0);
}

TEST(ModelConfig, SwinFamiliesHaveDefaultsOfTheirOwn) {
  for (const char* name : {"swin", "eq_swin"}) {
    const ModelConfig config = resolve(named(name));
    EXPECT_NO_THROW(validate(config)) << name;
    EXPECT_EQ(grid_of(config), 16);
    EXPECT_EQ(config.window, 4);
    EXPECT_EQ(is_exact(config), name == std::string("eq_swin"));
  }
  ModelConfig config = named("eq_swin");
  config.depths = {1, 2};
  EXPECT_EQ(resolve(config).depth, 3);
}

TEST(ModelConfig, TwinsKeepEverySize) {
  for (const std::string_view name : model_names()) {
    const ModelConfig own = resolve(named(std::string(name).c_str()));
    const ModelConfig ordinary = ordinary_twin(own), equivariant = equivariant_twin(own);
    for (const ModelConfig& twin : {ordinary, equivariant}) {
      const ModelConfig again = resolve(twin);
      EXPECT_NO_THROW(validate(again)) << name;
      EXPECT_EQ(again.width, own.width) << name;
      EXPECT_EQ(again.heads, own.heads) << name;
      EXPECT_EQ(again.patch_size, own.patch_size) << name;
      EXPECT_EQ(again.depths, own.depths) << name;
      EXPECT_EQ(again.window, own.window) << name;
      EXPECT_EQ(tokens_of(again), tokens_of(own)) << name;
    }
    EXPECT_FALSE(is_equivariant(ordinary)) << name;
    EXPECT_TRUE(is_equivariant(equivariant)) << name;
    EXPECT_EQ((is_equivariant(own) ? equivariant : ordinary).pos_embed, own.pos_embed) << name;
  }
}

TEST(ModelConfig, UserSettingsWin) {
  ModelConfig config = named("eq_vit_t");
  config.classes = 7;
  config.depth = 3;              // the default of the struct ...
  config.given.insert("depth");  // ... so it counts only because it is listed
  config.pos_embed = "full";
  const ModelConfig resolved = resolve(config);
  EXPECT_EQ(resolved.classes, 7);
  EXPECT_EQ(resolved.depth, 3);
  EXPECT_EQ(resolved.width, 384);
  EXPECT_EQ(resolved.pos_embed, "quarter");
  config.given.insert("pos_embed");
  EXPECT_EQ(resolve(config).pos_embed, "full");
}

TEST(ModelConfig, ResolveTwiceIsResolveOnce) {
  for (const std::string_view name : model_names()) {
    ModelConfig config = named(std::string(name).c_str());
    config.heads = 2;
    const ModelConfig once = resolve(config), twice = resolve(once);
    EXPECT_EQ(once.width, twice.width) << name;
    EXPECT_EQ(once.heads, 2) << name;
    EXPECT_EQ(once.heads, twice.heads) << name;
    EXPECT_EQ(once.group, twice.group) << name;
    EXPECT_EQ(once.pos_embed, twice.pos_embed) << name;
  }
}

TEST(ModelConfig, UnknownNameSuggestsTheNearest) {
  const std::string text = error_of<ValueError>([] { resolve(named("eq_vti")); });
  EXPECT_THAT(text, HasSubstr("unknown model \"eq_vti\", did you mean \"eq_vit\"?"));
  EXPECT_THAT(text, HasSubstr("vit_h"));
}

struct Refusal {
  const char* label;
  void (*change)(ModelConfig&);
  const char* text;
};

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithOneLineThatNamesLegalNeighbours) {
  ModelConfig config;
  GetParam().change(config);
  const std::string text = error_of([&] { validate(resolve(config)); });
  EXPECT_THAT(text, HasSubstr(GetParam().text));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Refused,
    ::testing::Values(
        Refusal{"patch", [](ModelConfig& c) { c.patch_size = 7; },
                "model.patch_size: 32x32 image with patch 7 leaves a remainder of 4; legal patch sizes "
                "nearby: 4, 8"},
        Refusal{"patch_above_image", [](ModelConfig& c) { c.patch_size = 40; },
                "legal patch sizes nearby: 32"},
        Refusal{"width", [](ModelConfig& c) { c.width = 66; },
                "model.width 66 is not a multiple of 4 (group c4): nearest 64, 68"},
        Refusal{"width_d4",
                [](ModelConfig& c) {
                  c.group = "d4";
                  c.width = 60;
                },
                "model.width 60 is not a multiple of 8 (group d4): nearest 56, 64"},
        Refusal{"heads", [](ModelConfig& c) { c.heads = 5; },
                "model.heads 5 does not divide width 64: nearest 4, 8"},
        Refusal{"head_dim", [](ModelConfig& c) { c.heads = 32; },
                "model.heads: head dimension 64/32 = 2 is not a multiple of 4 (group c4): nearest heads 16"},
        Refusal{"quarter_odd",
                [](ModelConfig& c) {
                  c.pos_embed = "quarter";
                  c.image_size = 224;
                  c.patch_size = 32;
                },
                "the quarter table needs an even grid, 224/32 is 7x7: use full, or image_size 192 or 256"},
        Refusal{"quarter_single",
                [](ModelConfig& c) {
                  c.pos_embed = "quarter";
                  c.patch_size = 32;
                },
                "32/32 is 1x1: use full, or image_size 64"},
        Refusal{"quarter_vit",
                [](ModelConfig& c) {
                  c.name = "vit";
                  c.pos_embed = "quarter";
                },
                "model.pos_embed: vit has the full table only"},
        Refusal{"position", [](ModelConfig& c) { c.pos_embed = "half"; },
                "\"half\" is neither full nor quarter"},
        Refusal{"pool", [](ModelConfig& c) { c.pool = "max"; },
                "model.pool \"max\" is neither mean nor token"},
        Refusal{"c8", [](ModelConfig& c) { c.group = "c8"; },
                "model.group: c8 has no exact image action; legal are c1, c2, mirror, c4, d4"},
        Refusal{"group", [](ModelConfig& c) { c.group = "c5"; },
                "model.group \"c5\" is unknown; legal are c1, c2"},
        Refusal{"group_vit",
                [](ModelConfig& c) {
                  c.name = "vit";
                  c.group = "c2";
                },
                "model.group c2: vit has no group axis; leave group out or use eq_vit"},
        Refusal{
            "ratio", [](ModelConfig& c) { c.mlp_ratio = 2.3; },
            "model.mlp_ratio 2.3 gives a hidden width of 147.2, not a multiple of 4: nearest ratio 2.3125"},
        Refusal{"ratio_sign", [](ModelConfig& c) { c.mlp_ratio = -1; }, "model.mlp_ratio -1 is not in (0, "},
        Refusal{"depth", [](ModelConfig& c) { c.depth = 0; }, "model.depth 0 is not in 1 to 1000"},
        Refusal{"classes", [](ModelConfig& c) { c.classes = -2; }, "model.classes -2 is not in 1 to"},
        Refusal{"image", [](ModelConfig& c) { c.image_size = 1 << 20; },
                "model.image_size 1048576 is not in 1 to 16384"},
        Refusal{"drop_path", [](ModelConfig& c) { c.drop_path = 1; }, "model.drop_path 1 is not in [0, 1)"},
        Refusal{"dropout", [](ModelConfig& c) { c.dropout = -0.1; }, "model.dropout -0.1 is not in [0, 1)"},
        Refusal{"backend", [](ModelConfig& c) { c.backend = "fast"; },
                "model.backend \"fast\" is not auto, flash or naive"},
        Refusal{"depths_of_vit",
                [](ModelConfig& c) {
                  c.depths = {2, 2};
                },
                "model.depths [2, 2]: eq_vit has one stage, of model.depth blocks"},
        Refusal{"window_of_vit", [](ModelConfig& c) { c.window = 4; },
                "model.window 4: eq_vit has no windows; leave window out"},
        Refusal{"depth_of_swin",
                [](ModelConfig& c) {
                  c.name = "swin";
                  c.depths = {2, 2};
                  c.depth = 5;
                },
                "model.depth 5 is not the sum of model.depths [2, 2]; leave depth out"},
        Refusal{"stages",
                [](ModelConfig& c) {
                  c.name = "swin";
                  c.depths = {2, 0};
                },
                "model.depths 0 is not in 1 to 1000"},
        Refusal{"many_stages",
                [](ModelConfig& c) {
                  c.name = "swin";
                  c.depths = std::vector<std::int64_t>(9, 1);
                },
                "model.depths has 9 entries; swin needs 1 to 8 stages, such as [2, 2, 6, 2]"},
        Refusal{
            "halving",
            [](ModelConfig& c) {
              c.name = "eq_swin_t";
              c.image_size = 112;
              c.given.insert("window");
              c.window = 7;
              c.approximate = true;
              c.depths = {1, 1, 1, 1, 1};
            },
            "model.image_size: 112/4 is a grid of 28x28, which 5 stages cannot halve 4 times; legal image "
            "sizes nearby: 448"},
        Refusal{
            "tiling",
            [](ModelConfig& c) {
              c.name = "eq_swin_t";
              c.image_size = 256;
            },
            "model.window: windows of 14 do not tile the grid of 64x64; legal windows nearby: 8, 16; image "
            "sizes: 224, 448"},
        Refusal{"inexact",
                [](ModelConfig& c) {
                  c.name = "eq_swin_t";
                  c.window = 7;
                },
                "model.window 7: only windows moved by half of their size keep the symmetry exactly; legal "
                "windows nearby: 1, 14; or set approximate: true"},
        Refusal{"swin_positions",
                [](ModelConfig& c) {
                  c.name = "eq_swin";
                  c.given.insert("pos_embed");
                },
                "model.pos_embed full: eq_swin knows positions within windows only; leave pos_embed out"},
        Refusal{"swin_pool",
                [](ModelConfig& c) {
                  c.name = "eq_swin";
                  c.pool = "token";
                },
                "model.pool token: eq_swin has no class token; leave pool out"},
        Refusal{"no_positions", [](ModelConfig& c) { c.pos_embed = "none"; },
                "\"none\" is neither full nor quarter"},
        Refusal{"products", [](ModelConfig& c) { c.products = 7; },
                "model.products 7: group c4 has flash forms of 5 and 6 products"}),
    [](const auto& test) { return std::string(test.param.label); });

TEST(ModelConfig, AcceptsEveryGroupWithAnImageAction) {
  for (const char* group : {"c1", "c2", "mirror", "c4", "d4"}) {
    for (const char* positions : {"full", "quarter"}) {
      ModelConfig config;
      config.group = group;
      config.pos_embed = positions;
      config.given = {"group"};
      EXPECT_NO_THROW(validate(resolve(config))) << group << " " << positions;
    }
  }
}

TEST(ModelConfig, TimmsNamesHaveTimmsParameters) {
  // Counted by timm 1.0.31.
  const std::vector<std::pair<const char*, std::int64_t>> timm = {
      {"vit_tiny_patch16_224", 5717416},
      {"vit_tiny_patch16_384", 5790376},
      {"vit_small_patch16_224", 22050664},
      {"vit_small_patch16_384", 22196584},
      {"vit_small_patch32_224", 22878952},
      {"vit_small_patch32_384", 22915432},
      {"vit_base_patch8_224", 86576872},
      {"vit_base_patch16_224", 86567656},
      {"vit_base_patch16_384", 86859496},
      {"vit_base_patch32_224", 88224232},
      {"vit_base_patch32_384", 88297192},
      {"vit_large_patch16_224", 304326632},
      {"vit_large_patch16_384", 304715752},
      {"vit_large_patch32_384", 306632680},
      {"vit_huge_patch14_224", 632045800},
      {"swin_tiny_patch4_window7_224", 28288354},
      {"swin_small_patch4_window7_224", 49606258},
      {"swin_base_patch4_window7_224", 87768224},
      {"swin_base_patch4_window12_384", 87903584},
      {"swin_large_patch4_window7_224", 196532476},
      {"swin_large_patch4_window12_384", 196735516}};
  for (const auto& [name, parameters] : timm) {
    EXPECT_THAT(model_names(), Contains(name));
    EXPECT_EQ(count_model(named(name)).parameters, parameters) << name;
    EXPECT_EQ(resolve(named(name)).classes, 1000) << name;
  }
}

}  // namespace
}  // namespace gyre
