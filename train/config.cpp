#include "train/config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/file.h"
#include "train/config_schema.h"

namespace gyre {
namespace {

const ConfigField* find_field(std::string_view path) {
  for (const ConfigField& field : config_schema()) {
    if (field.path() == path) return &field;
  }
  return nullptr;
}

bool is_section(std::string_view path) {
  return std::any_of(config_schema().begin(), config_schema().end(), [&](const ConfigField& field) {
    return field.section == path || field.section.starts_with(std::string(path) + ".");
  });
}

/// Keys and sections directly below `section` ("" for the top).
std::vector<std::string> children_of(std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  std::vector<std::string> names;
  for (const ConfigField& field : config_schema()) {
    const std::string path = field.path();
    if (!path.starts_with(prefix)) continue;
    std::string name = path.substr(prefix.size(), path.find('.', prefix.size()) - prefix.size());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

/// The nearest sibling of an unknown key, else the same key of another section, else all siblings.
std::string suggestion(std::string_view section, std::string_view key) {
  const auto siblings = children_of(section);
  if (const auto near = nearest_word(key, siblings)) return fmt::format("did you mean {}?", *near);
  for (const ConfigField& field : config_schema()) {
    if (field.name == key) return fmt::format("did you mean {}?", field.path());
  }
  return fmt::format("known here: {}", fmt::join(siblings, ", "));
}

/// Reads the mapping `node` into the keys below `section`; `where` gives the position of a line for errors.
template <class Where>
void read_section(Config& config, const std::string& section, const YamlNode& node, int line,
                  const Where& where) {
  if (node.kind == YamlNode::Kind::null) return;
  require<ConfigError>(node.kind == YamlNode::Kind::mapping, "{}: {} expects keys and values, not {}",
                       where(line), section.empty() ? "the configuration" : section, node.kind_name());
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string path = section.empty() ? entry.key : section + "." + entry.key;
    if (const ConfigField* field = find_field(path)) {
      try {
        field->read(config, *entry.value);
      } catch (const ValueError& error) {
        throw ConfigError(fmt::format("{}: {}: {}", where(entry.line), path, error.what()));
      }
    } else {
      require<ConfigError>(is_section(path), "{}: unknown key {}, {}", where(entry.line), path,
                           suggestion(section, entry.key));
      read_section(config, path, *entry.value, entry.line, where);
    }
  }
}

/// Line of a key of the section `train`, 0 where it is not given.
int line_in_train(const YamlNode& root, std::string_view key) {
  for (const YamlNode::Entry& section : root.entries) {
    if (section.key != "train") continue;
    for (const YamlNode::Entry& entry : section.value->entries) {
      if (entry.key == key) return entry.line;
    }
  }
  return 0;
}

/// One file gives the length of a run once; a stored configuration holds all keys, its updates count.
void require_one_length(const Config& config, const YamlNode& root, const std::string& origin) {
  if (config.train.time_budget.empty() || config.train.updates > 0) return;
  const int epochs = line_in_train(root, "epochs");
  require<ConfigError>(epochs == 0, "{}:{}: train.time_budget and train.epochs (line {}) exclude each other",
                       origin, line_in_train(root, "time_budget"), epochs);
}

/// A length of the run set later replaces those given before.
void replace_lengths(TrainConfig& train, std::string_view path) {
  if (path == "train.epochs" || (path == "train.updates" && train.updates > 0)) train.time_budget.clear();
  if (path == "train.epochs" || (path == "train.time_budget" && !train.time_budget.empty()))
    train.updates = 0;
}

bool touches_model(std::span<const std::string> overrides) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [](const std::string& text) { return text.starts_with("model."); });
}

/// What an error of the model begins with: the file, unless --set changed what the file says.
std::string model_origin(const std::string& file, std::span<const std::string> overrides) {
  return touches_model(overrides) ? "with --set" : file;
}

Config read_config(std::string_view text, const std::string& origin, std::span<const std::string> overrides) {
  const YamlNode::Pointer root = read_yaml(text, origin);
  require<ConfigError>(root->kind != YamlNode::Kind::null, "{}:1: the file holds no configuration", origin);
  Config config;
  read_section(config, "", *root, root->line, [&](int line) { return fmt::format("{}:{}", origin, line); });
  require_one_length(config, *root, origin);
  for (const std::string& override_text : overrides) apply_override(config, override_text);
  if (!config.finetune.checkpoint.empty()) return config;
  try {
    config.model = resolve(config.model);
  } catch (const Error& error) {
    throw ConfigError(fmt::format("{}: {}", model_origin(origin, overrides), error.what()));
  }
  return config;
}

/// One YAML line per key below headings of the sections; `comment` returns what follows the value.
template <class Comment>
std::string print_yaml(const Config& config, const Comment& comment) {
  std::string text, section;
  for (const ConfigField& field : config_schema()) {
    const auto depth = static_cast<std::size_t>(std::count(field.section.begin(), field.section.end(), '.'));
    if (field.section != section) {
      section = field.section;
      text += fmt::format("{:{}}{}:\n", "", 2 * depth, section.substr(section.rfind('.') + 1));
    }
    // Not both: a file that gives the two is refused.
    if (config.train.updates == 0 && !config.train.time_budget.empty() && field.path() == "train.epochs")
      continue;
    std::string line = fmt::format("{:{}}{}: {}", "", 2 * depth + 2, field.name, field.write(config));
    text += comment(field, std::move(line)) + '\n';
  }
  return text;
}

}  // namespace

Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const FileError& error) {
    throw ConfigError(error.what());
  }
  Config config = read_config(text, path.string(), overrides);
  if (!config.finetune.checkpoint.empty()) return config;
  try {
    validate(config.model);
  } catch (const Error& error) {
    throw ConfigError(fmt::format("{}: {}", model_origin(path.string(), overrides), error.what()));
  }
  return config;
}

Config parse_config(std::string_view text, const std::string& origin) {
  return read_config(text, origin, {});
}

void apply_override(Config& config, std::string_view text) {
  const std::size_t equals = text.find('=');
  require<ConfigError>(equals != std::string_view::npos && equals > 0, "--set {}: expects section.key=value",
                       text);
  const std::string path(text.substr(0, equals));
  const std::string value(text.substr(equals + 1));
  const ConfigField* field = find_field(path);
  if (!field) {
    require<ConfigError>(!is_section(path), "--set {}: {} is a section; give one of its keys: {}", text, path,
                         fmt::join(children_of(path), ", "));
    // Inside the deepest known section.
    std::size_t dot = path.rfind('.');
    while (dot != std::string::npos && !is_section(path.substr(0, dot)))
      dot = dot > 0 ? path.rfind('.', dot - 1) : std::string::npos;
    const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
    const std::string key = dot == std::string::npos ? path.substr(0, path.find('.')) : path.substr(dot + 1);
    throw ConfigError(fmt::format("--set {}: unknown key {}, {}", text, path, suggestion(section, key)));
  }
  try {
    // Only lists need YAML here; any other text stands for itself.
    const YamlNode::Pointer node =
        field->list ? read_yaml(value, fmt::format("--set {}", text)) : YamlNode::scalar(value);
    field->read(config, *node);
  } catch (const ValueError& error) {
    throw ConfigError(fmt::format("--set {}: {}: {}", text, path, error.what()));
  }
  replace_lengths(config.train, path);
}

std::string config_to_yaml(const Config& config) {
  Config effective = config;
  effective.model = resolve(config.model);
  return print_yaml(effective, [](const ConfigField&, std::string line) { return line; });
}

std::string config_help() {
  return print_yaml(Config{}, [](const ConfigField& field, const std::string& line) {
    return fmt::format("{:<32}  # {}: {}", line, field.legal, field.doc);
  });
}

double parse_duration(std::string_view text) {
  constexpr std::array<std::pair<char, double>, 4> units{{{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  const auto fail = [&] {
    return ValueError(fmt::format("'{}' is not a duration such as 90s, 4m or 1h30m", text));
  };
  constexpr double longest_hours = 1000;
  const auto too_long = [&] {
    return ValueError(fmt::format("'{}' is longer than {}h", text, longest_hours));
  };
  double seconds = 0;
  std::size_t next_unit = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = rest.find_first_not_of("0123456789.");
    if (length == 0 || length == std::string_view::npos) throw fail();
    const std::string_view number = rest.substr(0, length);
    const auto unit = std::find_if(units.begin() + static_cast<std::ptrdiff_t>(next_unit), units.end(),
                                   [&](const auto& u) { return u.first == rest[length]; });
    if (unit == units.end()) throw fail();
    // Digits that no double holds are too long as well, not a wrong word.
    const std::size_t first = std::min(number.find_first_not_of('0'), length);
    if (std::min(number.find('.'), length) > first + 12) throw too_long();
    try {
      seconds += unit->second * parse_number<double>(number);
    } catch (const ValueError&) {
      throw fail();
    }
    next_unit = static_cast<std::size_t>(unit - units.begin()) + 1;
    rest.remove_prefix(length + 1);
  }
  if (!(seconds > 0)) throw fail();
  if (seconds > longest_hours * 3600) throw too_long();
  return seconds;
}

}  // namespace gyre
