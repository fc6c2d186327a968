#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gyre {

/// Whole file as bytes; FileError with the system's reason.
std::string read_file(const std::filesystem::path& path);
/// A regular file open for reading at any place.
class InputFile {
 public:
  /// FileError with the system's reason, and for what is not a regular file.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// When it was opened.
  std::uint64_t size() const { return size_; }
  /// Fills `bytes` bytes from `offset`; FileError where the file ends before that.
  void read_at(std::uint64_t offset, void* target, std::size_t bytes) const;

 private:
  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_ = 0;
};
/// Writes, fsyncs and closes `path` (in place); FileError with the system's reason (disk full …), the partial
/// file removed.
void write_file(const std::filesystem::path& path, std::string_view bytes);
/// write_file beside, rename over `path`, fsync the folder: `path` is whole or untouched at every instant.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
void sync_file(const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& path);

}  // namespace gyre
