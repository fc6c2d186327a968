#include "train/metrics_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace gyre {
namespace {

constexpr const char* first_column = "update";

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Calls visit(line, whole) for each line without its end; `whole` is false for a last one that lacks it.
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;
    visit(text.substr(0, end), whole);
    text.remove_prefix(whole ? end + 1 : text.size());
  }
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

}  // namespace

std::string metrics_line(std::string_view kind, std::int64_t update,
                         const std::vector<std::pair<std::string, double>>& metrics) {
  std::string line = fmt::format("{{\"kind\":{},\"update\":{}", json_text(kind), update);
  for (const auto& [key, value] : metrics)
    line += fmt::format(",{}:{}", json_text(key), std::isfinite(value) ? fmt::format("{}", value) : "null");
  return line + "}\n";
}

std::string cut_metrics(std::string_view text, std::int64_t updates) {
  std::string kept;
  for_each_line(text, [&](std::string_view line, bool) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("update") || !json["update"].is_number_integer()) return;
    if (json["update"].get<std::int64_t>() > updates) return;
    kept += line;
    kept += '\n';
  });
  return kept;
}

std::string cut_summary(std::string_view text, std::int64_t updates) {
  std::string kept;
  std::size_t columns = 0;
  for_each_line(text, [&](std::string_view line, bool whole) {
    const std::vector<std::string> fields = split(line);
    std::int64_t update = 0;
    const char* end = fields[0].data() + fields[0].size();
    const bool number = std::from_chars(fields[0].data(), end, update).ptr == end && !fields[0].empty();
    const bool header = columns == 0 && fields[0] == first_column;
    if (header) columns = fields.size();
    // A row without its line end may end within a number.
    if (!whole || fields.size() != columns || (!header && (!number || update > updates))) return;
    kept += line;
    kept += '\n';
  });
  return kept;
}

SummaryFile::SummaryFile(std::filesystem::path path) : path_(std::move(path)) { open(); }

void SummaryFile::open() {
  file_ = std::make_unique<AppendFile>(path_);
  if (file_->empty()) return;
  const std::string text = read_file(path_);
  columns_ = split(std::string_view(text).substr(0, text.find('\n')));
}

void SummaryFile::append(std::int64_t update, const std::vector<std::pair<std::string, double>>& metrics) {
  const bool first = columns_.empty();
  std::vector<std::string> columns = first ? std::vector<std::string>{first_column} : columns_;
  const std::size_t before = columns.size();
  for (const auto& [key, value] : metrics) {
    require<ValueError>(key.find_first_of(",\"\r\n") == std::string::npos,
                        "summary column '{}' holds a comma, a quote or a line end", key);
    if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
  }
  std::string row = fmt::format("{}", update);
  for (std::size_t i = 1; i < columns.size(); ++i) {
    const auto found = std::find_if(metrics.begin(), metrics.end(),
                                    [&](const auto& metric) { return metric.first == columns[i]; });
    row += ',';
    if (found != metrics.end()) row += fmt::format("{}", found->second);
  }
  row += '\n';
  if (first) {
    file_->append(fmt::format("{}\n{}", fmt::join(columns, ","), row));
  } else if (columns.size() > before) {
    std::string text;
    for_each_line(read_file(path_), [&](std::string_view line, bool) {
      if (text.empty())
        text = fmt::format("{}\n", fmt::join(columns, ","));
      else
        text += fmt::format("{}{}\n", line, std::string(columns.size() - before, ','));
    });
    write_file_atomically(path_, text + row);
    open();
  } else {
    file_->append(row);
  }
  columns_ = std::move(columns);
}

}  // namespace gyre
