#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/append_file.h"

namespace gyre {

/// CRC-32C (Castagnoli, polynomial 0x82F63B78 reflected): of "123456789" 0xE3069283.
std::uint32_t crc32c(std::string_view bytes);
/// One TFRecord: length u64 LE, its masked CRC-32C, data, its masked CRC-32C.
std::string tf_record(std::string_view data);

/// Scalars for TensorBoard: TFRecords of protobuf `Event` messages in a new events file, so that a resumed
/// run adds to the files before it.
class TensorBoardWriter {
 public:
  /// `next_update` > 0 makes TensorBoard drop the points of earlier files from that update on.
  explicit TensorBoardWriter(const std::filesystem::path& folder, std::int64_t next_update = 0);

  void scalars(std::int64_t update, const std::vector<std::pair<std::string, double>>& values);
  void sync() { file_.sync(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace gyre
