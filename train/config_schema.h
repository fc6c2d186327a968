#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/words.h"
#include "train/config.h"
#include "train/parse.h"
#include "train/yaml_reader.h"

namespace gyre {

/// One key of the configuration: parsing, help, errors and saving all come from here.
struct ConfigField {
  std::string section;  ///< "train", "data.augment"
  std::string name;
  std::string legal;  ///< "[1, 65536]", "adamw | sgd", "true | false", "text"
  std::string doc;
  bool list = false;
  std::function<void(Config&, const YamlNode&)>
      read;  ///< ValueError without position: "0 is out of range [1, 65536]"
  std::function<std::string(const Config&)> write;  ///< as YAML

  std::string path() const { return section + "." + name; }
};

/// Every key, section by section, in the order of the structs.
const std::vector<ConfigField>& config_schema();

namespace schema {

/// Text of a scalar; ValueError "expects one value, not a list".
const std::string& scalar_text(const YamlNode& node);
/// In double quotes.
std::string in_quotes(std::string_view text);
/// Plain where YAML reads it back as this text, else in double quotes.
std::string quote(std::string_view text);

/// Adds the fields of the section that `access` finds in a Config, const or not.
template <class Access>
class Section {
 public:
  using S = std::remove_cvref_t<std::invoke_result_t<Access, Config&>>;
  Section(std::vector<ConfigField>& fields, std::string name, Access access)
      : fields_(fields), name_(std::move(name)), access_(access) {}

  template <class T>
  Section& number(std::string_view name, T S::*member, const Range<T>& range, std::string_view doc) {
    return add(
        name, member, range.str(), doc,
        [range](const YamlNode& node) { return parse_number<T>(scalar_text(node), range); },
        [](const T& value) { return fmt::format("{}", value); });
  }
  Section& flag(std::string_view name, bool S::*member, std::string_view doc) {
    return add(
        name, member, "true | false", doc, [](const YamlNode& node) { return parse_bool(scalar_text(node)); },
        [](bool value) { return std::string(value ? "true" : "false"); });
  }
  /// `check` throws ValueError for texts that are not legal.
  Section& text(std::string_view name, std::string S::*member, std::string_view legal, std::string_view doc,
                std::function<void(const std::string&)> check = {}) {
    return add(
        name, member, legal, doc,
        [check](const YamlNode& node) {
          std::string value = node.kind == YamlNode::Kind::null ? "" : scalar_text(node);
          if (check) check(value);
          return value;
        },
        [](const std::string& value) { return quote(value); });
  }
  /// `check` throws ValueError for texts that deserve words of their own.
  Section& choice(std::string_view name, std::string S::*member, const std::vector<std::string>& choices,
                  std::string_view doc, std::function<void(const std::string&)> check = {}) {
    return add(
        name, member, legal_of(choices), doc,
        [choices, check](const YamlNode& node) {
          if (check) check(scalar_text(node));
          return choices[pick(scalar_text(node), choices)];
        },
        [](const std::string& value) { return quote(value); });
  }
  template <class T>
  Section& list(std::string_view name, std::vector<T> S::*member, const Range<T>& range,
                std::string_view doc) {
    return add(
        name, member, "list of " + range.str(), doc,
        [range](const YamlNode& node) {
          require<ValueError>(node.kind == YamlNode::Kind::sequence, "expects a list such as [1, 2], not {}",
                              node.kind_name());
          std::vector<T> values;
          for (const auto& item : node.items) values.push_back(parse_number<T>(scalar_text(*item), range));
          return values;
        },
        [](const std::vector<T>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); });
  }
  /// Texts, written so that YAML and JSON read them.
  Section& texts(std::string_view name, std::vector<std::string> S::*member, std::string_view legal,
                 std::string_view doc) {
    return add(
        name, member, legal, doc,
        [](const YamlNode& node) {
          require<ValueError>(node.kind == YamlNode::Kind::sequence, "expects a list such as [a, b], not {}",
                              node.kind_name());
          std::vector<std::string> values;
          for (const auto& item : node.items) values.push_back(scalar_text(*item));
          return values;
        },
        [](const std::vector<std::string>& values) {
          std::vector<std::string> quoted;
          for (const std::string& value : values) quoted.push_back(in_quotes(value));
          return fmt::format("[{}]", fmt::join(quoted, ", "));
        });
  }

 private:
  static std::string legal_of(const std::vector<std::string>& choices) {
    return fmt::format("{}", fmt::join(choices, " | "));
  }
  static std::size_t pick(const std::string& text, const std::vector<std::string>& choices) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] == text) return i;
    }
    const auto near = nearest_word(text, choices);
    throw ValueError(fmt::format("'{}' is not one of {}{}", text, fmt::join(choices, ", "),
                                 near ? fmt::format("; did you mean {}?", *near) : ""));
  }
  template <class T, class Read, class Write>
  Section& add(std::string_view name, T S::*member, std::string_view legal, std::string_view doc, Read read,
               Write write) {
    constexpr bool list = !std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>;
    fields_.push_back(
        {name_, std::string(name), std::string(legal), std::string(doc), list,
         [access = access_, member, read](Config& c, const YamlNode& node) {
           access(c).*member = read(node);
         },
         [access = access_, member, write](const Config& c) { return write(access(c).*member); }});
    return *this;
  }

  std::vector<ConfigField>& fields_;
  std::string name_;
  Access access_;
};

}  // namespace schema
}  // namespace gyre
