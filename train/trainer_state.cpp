#include "train/trainer_state.h"

#include <zlib.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.h"
#include "train/loss_scaler.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "gyre checkpoint";
constexpr int format_version = 1;

/// Folder names may hold any bytes: no name makes a save fail.
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template <class State, class Visit>
void visit_state(State& state, const Visit& visit) {
  visit("updates", state.updates);
  visit("epoch", state.epoch);
  visit("step", state.step);
  visit("bad_steps", state.bad_steps);
  visit("skipped", state.skipped);
  visit("ema_updates", state.ema_updates);
  visit("best_top1", state.best_top1);
  visit("best_epoch", state.best_epoch);
  visit("last_loss", state.last_loss);
  visit("last_top1", state.last_top1);
  visit("seconds", state.seconds);
  visit("window_loss", state.window_loss);
  visit("window_samples", state.window_samples);
  visit("window_norm", state.window_norm);
  visit("window_steps", state.window_steps);
  visit("epoch_loss", state.epoch_loss);
  visit("epoch_samples", state.epoch_samples);
}

/// What checkpoints from before mixed precision lack.
template <class State, class Visit>
void visit_loss_scale(State& state, const Visit& visit) {
  visit("loss_scale", state.loss_scale);
  visit("scale_updates", state.scale_updates);
}

Json to_json(std::int64_t value) { return value; }
Json to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void from_json(const Json& json, std::int64_t& value) {
  require<ValueError>(json.is_number_integer(), "{} is not a whole number", dump(json));
  require<ValueError>(!json.is_number_unsigned() || std::in_range<std::int64_t>(json.get<std::uint64_t>()),
                      "{} is too large", dump(json));
  value = json.get<std::int64_t>();
}
void from_json(const Json& json, double& value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (json.is_number())
    value = json.get<double>();
  else if (json == "nan")
    value = std::numeric_limits<double>::quiet_NaN();
  else if (json == "inf" || json == "-inf")
    value = json == "inf" ? infinity : -infinity;
  else
    throw ValueError(fmt::format("{} is not a number", dump(json)));
}

const Json& member(const Json& json, const std::string& key) {
  require<ValueError>(json.is_object() && json.contains(key), "{} is missing", key);
  return json.at(key);
}

template <class T>
T value_of(const Json& json, const std::string& key) {
  try {
    return member(json, key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw ValueError(fmt::format("{} has the wrong type", key));
  }
}

FileRecords decode(Json json, const std::string& origin, Checkpoint& checkpoint) {
  require<ValueError>(json.is_object() && json.value("format", Json()) == format_name,
                      "not the description of a gyre checkpoint");
  const auto version = value_of<std::int64_t>(json, "version");
  require<ValueError>(version == format_version, "format version {}, this program reads {}", version,
                      format_version);
  const auto expected = value_of<std::uint32_t>(json, "crc32");
  json.erase("crc32");
  const std::uint32_t found = crc32_of(dump(json));
  require<ValueError>(found == expected, "damaged: CRC-32 {:08x}, expected {:08x}", found, expected);

  checkpoint.config = parse_config(value_of<std::string>(json, "config"), origin);
  checkpoint.preprocessing =
      Preprocessing::from_map(value_of<std::map<std::string, std::string>>(json, "preprocessing"));
  checkpoint.class_names = value_of<std::vector<std::string>>(json, "class_names");
  const Json& state = member(json, "state");
  const auto read = [&](const char* name, auto& value) { from_json(member(state, name), value); };
  visit_state(checkpoint.state, read);
  if (state.contains("loss_scale")) visit_loss_scale(checkpoint.state, read);
  if (checkpoint.state.loss_scale != 0)
    LossScaler().load_state({checkpoint.state.loss_scale, checkpoint.state.scale_updates});

  FileRecords files;
  for (const auto& [name, record] : member(json, "files").items())
    files[name] = {value_of<std::size_t>(record, "bytes"), value_of<std::uint32_t>(record, "crc32")};
  require<ValueError>(files.contains("model.safetensors"), "no model.safetensors is listed");
  return files;
}

/// The lines of the top-level section `name`.
std::string section_of(const std::string& yaml, const std::string& name) {
  const std::string head = name + ":\n";
  std::size_t begin = yaml.starts_with(head) ? 0 : yaml.find("\n" + head);
  if (begin == std::string::npos) return "";
  if (begin > 0) ++begin;
  std::size_t end = begin + head.size();
  while (end < yaml.size() && yaml[end] == ' ') {
    end = yaml.find('\n', end);
    end = end == std::string::npos ? yaml.size() : end + 1;
  }
  return yaml.substr(begin, end - begin);
}

}  // namespace

std::uint32_t crc32_of(std::string_view bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(0, data, bytes.size()));
}

std::string encode_trainer_json(const Checkpoint& checkpoint, const FileRecords& files) {
  Json json;
  json["format"] = format_name;
  json["version"] = format_version;
  Json& state = json["state"];
  const auto write = [&](const char* name, const auto& value) { state[name] = to_json(value); };
  visit_state(checkpoint.state, write);
  visit_loss_scale(checkpoint.state, write);
  json["config"] = config_to_yaml(checkpoint.config);
  json["preprocessing"] = checkpoint.preprocessing.to_map();
  json["class_names"] = checkpoint.class_names;
  Json& records = json["files"] = Json::object();
  for (const auto& [name, record] : files) records[name] = {{"bytes", record.bytes}, {"crc32", record.crc32}};
  json["crc32"] = crc32_of(dump(json));
  return dump(json, 1) + "\n";
}

FileRecords decode_trainer_json(const std::string& text, const std::string& origin, Checkpoint& checkpoint) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  require<FileError>(!json.is_discarded(), "{}: truncated or damaged: {} bytes that are not valid JSON",
                     origin, text.size());
  try {
    return decode(std::move(json), origin, checkpoint);
  } catch (const ConfigError& error) {
    throw FileError(error.what());  // names the origin already
  } catch (const Error& error) {
    throw FileError(fmt::format("{}: {}", origin, error.what()));
  }
}

Metadata weights_metadata(const Checkpoint& checkpoint, const std::string& kind) {
  const auto clean = [](const std::string& text) { return Json::parse(dump(Json(text))).get<std::string>(); };
  const ModelConfig& model = checkpoint.config.model;
  Metadata metadata{{"format", "gyre"},
                    {"version", fmt::format("{}", format_version)},
                    {"weights", kind},
                    {"model", clean(section_of(config_to_yaml(checkpoint.config), "model"))},
                    {"group", clean(checkpoint.config.model.group)},
                    {"preprocessing", dump(Json(checkpoint.preprocessing.to_map()))},
                    {"class_names", dump(Json(checkpoint.class_names))},
                    {"updates", fmt::format("{}", checkpoint.state.updates)},
                    {"grid", fmt::format("{0}x{0}", grid_of(model))},
                    {"class_token", model.pool == "token" ? "true" : "false"}};
  if (const std::string& parent = checkpoint.config.finetune.checkpoint; !parent.empty())
    metadata["parent"] = clean(parent);
  return metadata;
}

bool read_weights_metadata(const Metadata& metadata, const std::string& origin, Checkpoint& checkpoint) {
  for (const char* key : {"model", "preprocessing", "class_names"})
    if (!metadata.contains(key)) return false;
  const std::string where = origin + ": metadata";
  try {
    checkpoint.config = parse_config(metadata.at("model"), where);
    checkpoint.preprocessing = Preprocessing::from_map(
        Json::parse(metadata.at("preprocessing")).get<std::map<std::string, std::string>>());
    checkpoint.class_names = Json::parse(metadata.at("class_names")).get<std::vector<std::string>>();
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: {}", where, error.what()));
  } catch (const nlohmann::json::exception&) {
    throw FileError(fmt::format("{}: preprocessing or class_names is not the JSON expected", where));
  }
  return true;
}

}  // namespace gyre
