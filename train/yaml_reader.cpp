#include "train/yaml_reader.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "train/config.h"

namespace gyre {
namespace {

using Node = std::shared_ptr<YamlNode>;

/// Builds the tree from parser events: yaml-cpp's own nodes hide duplicate keys.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& origin) : origin_(origin) {}

  YamlNode::Pointer root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place(make(YamlNode::Kind::null, mark, anchor), mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    const bool open =
        found != anchors_.end() &&
        std::any_of(stack_.begin(), stack_.end(), [&](const Open& o) { return o.node == found->second; });
    require<ConfigError>(found != anchors_.end() && !open,
                         "{}:{}:{}: the alias refers to a node that contains it", origin_, mark.line + 1,
                         mark.column + 1);
    place(found->second, mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(YamlNode::Kind::scalar, mark, anchor);
    node->text = value;
    node->quoted = tag == "!";
    place(std::move(node), mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::sequence, mark, anchor), mark);
  }
  void OnSequenceEnd() override { stack_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::mapping, mark, anchor), mark);
  }
  void OnMapEnd() override {
    for (const YamlNode::Entry& merge : stack_.back().merges)
      merge_into(*stack_.back().node, *merge.value, merge.line);
    stack_.pop_back();
  }

 private:
  struct Open {
    Node node;
    bool has_key = false;
    std::string key;
    int key_line = 0;
    std::vector<YamlNode::Entry> merges;
  };

  Node make(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    if (anchor != 0) anchors_[anchor] = node;
    return node;
  }

  void open(Node node, const YAML::Mark& mark) {
    place(node, mark);
    stack_.push_back({.node = std::move(node), .key = {}, .merges = {}});
  }

  void place(Node node, const YAML::Mark& mark) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node->kind == YamlNode::Kind::sequence) {
      parent.node->items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, *node, mark);
    } else {
      auto& target = parent.key == "<<" ? parent.merges : parent.node->entries;
      target.push_back({std::move(parent.key), parent.key_line, std::move(node)});
      parent.has_key = false;
    }
  }

  void take_key(Open& parent, const YamlNode& key, const YAML::Mark& mark) {
    const int line = mark.line + 1;
    require<ConfigError>(key.kind == YamlNode::Kind::scalar, "{}:{}:{}: a key must be a word, not {}",
                         origin_, line, mark.column + 1, key.kind_name());
    for (const auto& entry : parent.node->entries) {
      require<ConfigError>(entry.key != key.text, "{}:{}: key {} is already set in line {}", origin_, line,
                           key.text, entry.line);
    }
    parent.has_key = true;
    parent.key = key.text;
    parent.key_line = line;
  }

  void merge_into(YamlNode& target, const YamlNode& source, int line) {
    if (source.kind == YamlNode::Kind::sequence) {
      for (const auto& item : source.items) merge_into(target, *item, line);
      return;
    }
    require<ConfigError>(source.kind == YamlNode::Kind::mapping, "{}:{}: << merges a mapping, not {}",
                         origin_, line, source.kind_name());
    for (const auto& entry : source.entries) {
      const bool present = std::any_of(target.entries.begin(), target.entries.end(),
                                       [&](const YamlNode::Entry& e) { return e.key == entry.key; });
      if (!present) target.entries.push_back(entry);
    }
  }

  const std::string& origin_;
  YamlNode::Pointer root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
};

}  // namespace

YamlNode::Pointer YamlNode::scalar(std::string text) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::scalar;
  node->text = std::move(text);
  return node;
}

std::string_view YamlNode::kind_name() const {
  switch (kind) {
    case Kind::null: return "nothing";
    case Kind::scalar: return "text";
    case Kind::sequence: return "a list";
    case Kind::mapping: return "a mapping";
  }
  return "";
}

YamlNode::Pointer read_yaml(std::string_view text, const std::string& origin) {
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(origin);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return std::make_shared<YamlNode>();
    TreeBuilder rest(origin);
    const bool more = parser.HandleNextDocument(rest);
    require<ConfigError>(!more, "{}:{}: a second YAML document begins here; one is read", origin,
                         more && rest.root() ? rest.root()->line : 1);
  } catch (const YAML::Exception& error) {
    throw ConfigError(
        fmt::format("{}:{}:{}: {}", origin, error.mark.line + 1, error.mark.column + 1, error.msg));
  }
  return builder.root() ? builder.root() : std::make_shared<YamlNode>();
}

}  // namespace gyre
