#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/append_file.h"

namespace gyre {

/// {"kind":"step","update":50,"loss":0.25} and a line end; NaN and infinities are null.
std::string metrics_line(std::string_view kind, std::int64_t update,
                         const std::vector<std::pair<std::string, double>>& metrics);
/// The lines of a metrics.jsonl up to `updates`; torn ones are dropped.
std::string cut_metrics(std::string_view text, std::int64_t updates);
/// The header and the rows of a summary.csv up to `updates`; a torn last row is dropped.
std::string cut_summary(std::string_view text, std::int64_t updates);

/// Rows of numbers below a header that the first row sets; a key that comes up later adds a column. The first
/// column is "update".
class SummaryFile {
 public:
  /// Opens or creates. FileError with the system's reason.
  explicit SummaryFile(std::filesystem::path path);
  /// FileError as above; ValueError for a key with a comma, a quote or a line end.
  void append(std::int64_t update, const std::vector<std::pair<std::string, double>>& metrics);
  void sync() { file_->sync(); }

 private:
  void open();

  std::filesystem::path path_;
  std::unique_ptr<AppendFile> file_;
  std::vector<std::string> columns_;  ///< empty before the first row
};

}  // namespace gyre
