#include "train/yaml_reader.h"

#include <gtest/gtest.h>

#include "train/config.h"

namespace gyre {
namespace {

std::string error_of(std::string_view text) {
  try {
    read_yaml(text, "x.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(YamlReader, KeepsTextLinesAndOrder) {
  const auto root = read_yaml("b: 1e-4\n\na:\n  - x\n  - \"1\"\nc:\n", "x.yaml");
  ASSERT_EQ(root->kind, YamlNode::Kind::mapping);
  ASSERT_EQ(root->entries.size(), 3u);
  EXPECT_EQ(root->entries[0].key, "b");
  EXPECT_EQ(root->entries[0].value->text, "1e-4");
  EXPECT_FALSE(root->entries[0].value->quoted);
  EXPECT_EQ(root->entries[1].line, 3);
  ASSERT_EQ(root->entries[1].value->items.size(), 2u);
  EXPECT_EQ(root->entries[1].value->items[1]->text, "1");
  EXPECT_TRUE(root->entries[1].value->items[1]->quoted);
  EXPECT_EQ(root->entries[1].value->items[1]->line, 5);
  EXPECT_EQ(root->entries[2].value->kind, YamlNode::Kind::null);
}

TEST(YamlReader, AliasesAndMerges) {
  const auto root = read_yaml("a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: *x\n  q: 3\n", "x.yaml");
  EXPECT_EQ(root->entries[1].value->entries[0].value->text, "1");
  const YamlNode& merged = *root->entries[2].value;
  ASSERT_EQ(merged.entries.size(), 2u);
  EXPECT_EQ(merged.entries[0].key, "q");
  EXPECT_EQ(merged.entries[0].value->text, "3");
  EXPECT_EQ(merged.entries[1].key, "p");
}

TEST(YamlReader, ManyAliasesCostLittle) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) text += fmt::format("a{}: &a{} [*a{}, *a{}]\n", i, i, i - 1, i - 1);
  EXPECT_EQ(read_yaml(text, "x.yaml")->entries.size(), 60u);
}

TEST(YamlReader, EmptyTextsHoldNothing) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) {
    EXPECT_EQ(read_yaml(text, "x.yaml")->kind, YamlNode::Kind::null) << text;
  }
}

TEST(YamlReader, DuplicateKeyNamesBothLines) {
  EXPECT_EQ(error_of("a: 1\nb: 2\n\na: 3\n"), "x.yaml:4: key a is already set in line 1");
  EXPECT_EQ(error_of("t:\n  k: 1\n  k: 1\n"), "x.yaml:3: key k is already set in line 2");
  EXPECT_EQ(error_of("{p: 1, p: 2}"), "x.yaml:1: key p is already set in line 1");
}

TEST(YamlReader, BrokenYamlHasAPosition) {
  EXPECT_EQ(error_of("a: [1, 2\nb: 3\n").substr(0, 7), "x.yaml:");
  EXPECT_EQ(error_of("a: 1\n b: 2\n").substr(0, 9), "x.yaml:2:");
  EXPECT_EQ(error_of("a: *nobody\n").substr(0, 9), "x.yaml:1:");
  EXPECT_EQ(error_of("? [a, b]\n: 1\n"), "x.yaml:1:3: a key must be a word, not a list");
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "x.yaml:3: a second YAML document begins here; one is read");
  EXPECT_EQ(error_of("a: &x\n  b: *x\n"), "x.yaml:2:6: the alias refers to a node that contains it");
  EXPECT_EQ(error_of("a:\n  <<: 3\n"), "x.yaml:2: << merges a mapping, not text");
  for (const char* text :
       {"a: [1, 2\nb: 3\n", "a: \"x\n", "a:\n\t- b\n", "%YAML x\n---\na: 1\n", "@", "a: !!"}) {
    const std::string error = error_of(text);
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace gyre
