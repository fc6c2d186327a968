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

/// Of an IHDR chunk: what libpng would refuse, with a message on standard error.
bool is_header_allowed(std::string_view data) {
  const auto byte = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<std::uint8_t>(data[at]));
  };
  const unsigned depth = byte(8), colour = byte(9);
  const bool grey = colour == 0, palette = colour == 3, others = colour == 2 || colour == 4 || colour == 6;
  const bool small = depth == 1 || depth == 2 || depth == 4;
  const bool fits = depth == 8    ? grey || palette || others
                    : depth == 16 ? grey || others
                                  : small && (grey || palette);
  return fits && byte(10) == 0 && byte(11) == 0 && byte(12) <= 1;
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
    const bool first = at == png_signature.size();
    require<FileError>(first == (type == "IHDR") && (!first || length == 13), "{}: damaged PNG (header)",
                       name);
    if (first) {
      const std::uint64_t width = big_endian(chunk, 8), height = big_endian(chunk, 12);
      require<FileError>(width * height <= most_pixels, "{}: {} x {} pixels; at most {} are read", name,
                         width, height, most_pixels);
      require<FileError>(width > 0 && height > 0, "{}: damaged PNG ({} x {} pixels)", name, width, height);
      require<FileError>(is_header_allowed(chunk.substr(8, length)), "{}: damaged PNG (header)", name);
    }
    if (is_critical(type) || type == "tRNS" || type == "eXIf") kept += chunk;
    at += chunk.size();
  }
  return kept;
}

}  // namespace gyre::detail
