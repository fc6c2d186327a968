#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gyre {

/// Whole file as bytes; FileError with the system's reason.
std::string read_file(const std::filesystem::path& path);
/// Writes, fsyncs and closes `path` (in place); FileError with the system's reason (disk full …), the partial
/// file removed.
void write_file(const std::filesystem::path& path, std::string_view bytes);
/// write_file beside, rename over `path`, fsync the folder: `path` is whole or untouched at every instant.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
void sync_file(const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& path);

}  // namespace gyre
