#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace gyre {

/// Whether the bytes begin as gzip data do (1F 8B).
bool is_gzip(std::string_view bytes);

/// Unpacks gzip data held elsewhere in memory, all members in turn.
class GzipReader {
 public:
  /// `name` begins every error. FileError from read() for data that are cut off, damaged or followed by
  /// others.
  GzipReader(std::string_view bytes, std::string name);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Up to `count` unpacked bytes; fewer only at the end, and only then the checksum has been compared.
  std::size_t read(void* out, std::size_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string name_;
};

}  // namespace gyre
