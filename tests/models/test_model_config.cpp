#include "models/model_config.h"

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

}  // namespace
}  // namespace gyre
