#pragma once

#include <filesystem>
#include <string_view>

namespace gyre {

/// A file that only grows. Each append reaches the system at once, whole or not at all.
class AppendFile {
 public:
  /// Opens or creates; `fresh` refuses an existing file. FileError with the system's reason.
  explicit AppendFile(std::filesystem::path path, bool fresh = false);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool empty() const;
  /// FileError with the system's reason (disk full …); the file is then as before.
  void append(std::string_view bytes);
  /// To the disk.
  void sync();

 private:
  std::filesystem::path path_;
  int fd_;
};

}  // namespace gyre
