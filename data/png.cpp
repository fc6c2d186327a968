#include <zlib.h>

#include <cstdint>

#include "core/error.h"
#include "data/decode.h"

namespace gyre::detail {

namespace {

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

bool is_critical(std::string_view type) { return type[0] >= 'A' && type[0] <= 'Z'; }

}  // namespace

std::string essential_png(std::string_view bytes, const std::string& name) {
  constexpr std::size_t frame = 12;  // length, type and checksum around a chunk's data
  std::string kept(png_signature);
  std::size_t at = png_signature.size();
  for (std::string_view type; type != "IEND";) {
    const bool begins = bytes.size() - at >= frame;
    const std::size_t length = begins ? big_endian(bytes, at) : 0;
    require<FileError>(begins && bytes.size() - at - frame >= length, "{}: cut-off PNG ({} bytes)", name,
                       bytes.size());
    const std::string_view chunk = bytes.substr(at, length + frame);
    const std::string_view covered = chunk.substr(4, length + 4);
    type = chunk.substr(4, 4);
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(covered.data()), static_cast<uInt>(covered.size()));
    require<FileError>(sum == big_endian(chunk, length + 8), "{}: damaged PNG (checksum at byte {})", name,
                       at);
    if (type == "IHDR" && length >= 8) {
      const std::uint64_t width = big_endian(chunk, 8), height = big_endian(chunk, 12);
      require<FileError>(width * height <= most_pixels, "{}: {} x {} pixels; at most {} are read", name,
                         width, height, most_pixels);
    }
    if (is_critical(type) || type == "tRNS" || type == "eXIf") kept += chunk;
    at += chunk.size();
  }
  return kept;
}

}  // namespace gyre::detail
