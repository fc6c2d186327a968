#include "bench/tune_table.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/machine.h"
#include "core/error.h"
#include "core/parallel.h"
#include "kernels/cpu/flash_kernels.h"
#include "kernels/cpu/gemm_f32.h"
#include "train/trainer_state.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;
using kernels::EqDirection;
using kernels::EqImplementation;

constexpr const char* format_name = "gyre tune";
constexpr int format_version = 1;
constexpr double clear_win = 1.05;

Json to_json(const TuneCell& cell) {
  return {{"group", cell.group},
          {"direction", name_of(cell.direction)},
          {"rows", cell.rows},
          {"channels_in", cell.channels_in},
          {"channels_out", cell.channels_out},
          {"fused", cell.fused},
          {"packed", cell.packed},
          {"naive", cell.naive}};
}

Json head_of(const TuneTable& table) {
  return {{"format", format_name},        {"version", format_version},    {"gyre", table.key.gyre},
          {"cpu", table.key.cpu},         {"simd", table.key.simd},       {"library", table.key.library},
          {"threads", table.key.threads}, {"unit", "ms per call, median"}};
}

Json whole(const TuneTable& table) {
  Json json = head_of(table);
  Json& cells = json["cells"] = Json::array();
  for (const TuneCell& cell : table.cells) cells.push_back(to_json(cell));
  return json;
}

/// A file may say anything: texts that are not UTF-8 are replaced.
std::string compact(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

TuneCell cell_of(const Json& json) {
  TuneCell cell;
  cell.group = json.at("group").get<std::string>();
  Group::get(cell.group);
  const auto direction = json.at("direction").get<std::string>();
  require<ValueError>(direction == "forward" || direction == "backward", "direction '{}'", direction);
  cell.direction = direction == "forward" ? EqDirection::forward : EqDirection::backward;
  cell.rows = json.at("rows").get<std::int64_t>();
  cell.channels_in = json.at("channels_in").get<std::int64_t>();
  cell.channels_out = json.at("channels_out").get<std::int64_t>();
  cell.fused = json.at("fused").get<double>();
  cell.packed = json.at("packed").get<double>();
  cell.naive = json.at("naive").get<double>();
  require<ValueError>(cell.rows >= 1 && cell.channels_in >= 1 && cell.channels_out >= 1 && cell.fused > 0 &&
                          cell.packed > 0 && cell.naive > 0,
                      "sizes and times must be positive");
  return cell;
}

kernels::EqShape shape_of(const TuneCell& cell, int threads) {
  return {Group::get(cell.group), cell.direction, cell.rows, cell.channels_in, cell.channels_out, threads};
}

EqImplementation fastest(const TuneCell& cell, EqImplementation usual, bool flash_only) {
  const std::array times{cell.fused, cell.packed, cell.naive};
  EqImplementation best = usual;
  double limit = times[static_cast<std::size_t>(usual)] / clear_win;
  for (std::size_t i = 0; i < (flash_only ? 2 : times.size()); ++i) {
    if (times[i] >= limit) continue;
    best = static_cast<EqImplementation>(i);
    limit = times[i];
  }
  return best;
}

}  // namespace

TuneKey this_tune_key(const std::string& version) {
  return {version, this_cpu(), kernels::cpu::flash_target(), kernels::cpu::dense_library_version(),
          num_threads()};
}

std::string tune_table_id(const TuneTable& table) {
  return fmt::format("{:08x}", crc32_of(compact(whole(table))));
}

std::string encode_tune_table(const TuneTable& table) {
  Json head = head_of(table);
  head["crc32"] = tune_table_id(table);
  std::string text = head.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // the closing brace on its line
  text += ",\n \"cells\": [";
  for (std::size_t i = 0; i < table.cells.size(); ++i)
    text += (i == 0 ? "\n  " : ",\n  ") + compact(to_json(table.cells[i]));
  return text + "\n ]\n}\n";
}

TuneTable decode_tune_table(const std::string& text, const std::string& origin) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  require<FileError>(!json.is_discarded(), "{}: truncated or damaged: {} bytes that are not valid JSON",
                     origin, text.size());
  require<FileError>(json.is_object() && json.value("format", Json()) == format_name,
                     "{}: not a table of gyre tune", origin);
  require<FileError>(json.value("version", Json()) == format_version,
                     "{}: format version {}, this program reads {}", origin,
                     compact(json.value("version", Json())), format_version);
  TuneTable table;
  std::string expected;
  try {
    table.key = {json.at("gyre").get<std::string>(), json.at("cpu").get<std::string>(),
                 json.at("simd").get<std::string>(), json.at("library").get<std::string>(),
                 json.at("threads").get<int>()};
    expected = json.at("crc32").get<std::string>();
    for (const Json& cell : json.at("cells")) table.cells.push_back(cell_of(cell));
  } catch (const nlohmann::json::exception&) {
    throw FileError(fmt::format("{}: damaged: a value is missing or has the wrong type", origin));
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: damaged: {}", origin, error.what()));
  }
  const std::string found = tune_table_id(table);
  require<FileError>(found == expected, "{}: damaged: CRC-32 {}, expected {}", origin, found, expected);
  return table;
}

void require_fit(const TuneTable& table, const TuneKey& key, const std::string& origin) {
  const auto same = [&](const char* what, const auto& measured, const auto& here) {
    require<FileError>(measured == here, "{}: measured with {} {}, this is {}; run gyre tune again", origin,
                       what, measured, here);
  };
  same("gyre", table.key.gyre, key.gyre);
  same("CPU", table.key.cpu, key.cpu);
  same("instruction set", table.key.simd, key.simd);
  same("library", table.key.library, key.library);
  require<FileError>(table.key.threads == key.threads,
                     "{}: measured with {} threads, this run has {}; run gyre tune again", origin,
                     table.key.threads, key.threads);
}

std::shared_ptr<const kernels::EqTable> choices_of(const TuneTable& table) {
  auto choices = std::make_shared<kernels::EqTable>(tune_table_id(table), table.key.threads);
  for (const TuneCell& cell : table.cells) {
    const kernels::EqShape shape = shape_of(cell, table.key.threads);
    choices->set(shape, {fastest(cell, fixed_eq_choice(shape, false), false),
                         fastest(cell, fixed_eq_choice(shape, true), true)});
  }
  return choices;
}

}  // namespace gyre
