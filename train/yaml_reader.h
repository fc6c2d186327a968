#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// A YAML document as plain data: every scalar stays text, every key knows its line. Aliases share nodes.
struct YamlNode {
  using Pointer = std::shared_ptr<const YamlNode>;
  enum class Kind { null, scalar, sequence, mapping };
  struct Entry {
    std::string key;
    int line;  ///< 1-based, of the key
    Pointer value;
  };

  Kind kind = Kind::null;
  std::string text;            ///< of a scalar
  bool quoted = false;         ///< a scalar written in quotes or as a block
  int line = 1, column = 1;    ///< 1-based
  std::vector<Pointer> items;  ///< of a sequence
  std::vector<Entry> entries;  ///< of a mapping, in file order

  static Pointer scalar(std::string text);
  /// "nothing", "text", "a list" or "a mapping", for messages.
  std::string_view kind_name() const;
};

/// Parses one YAML document. ConfigError "origin:line:column: …" for broken YAML, several documents or keys
/// that are not scalars; "origin:line: …" naming both lines for a key given twice. A `<<` key merges mappings
/// that it does not override.
YamlNode::Pointer read_yaml(std::string_view text, const std::string& origin);

}  // namespace gyre
