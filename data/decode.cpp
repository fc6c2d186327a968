#include "data/decode.h"

#include <array>

#include "core/error.h"
#include "core/file.h"

namespace gyre {

namespace {

std::string first_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 8))
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", static_cast<unsigned char>(c));
  return text;
}

/// The format that the first bytes promise; empty if they promise none.
std::string_view format_of(std::string_view bytes) {
  struct Magic {
    std::string_view bytes, format;
  };
  static constexpr std::array<Magic, 6> known{{{"\xff\xd8", "JPEG"},
                                               {"\x89PNG", "PNG"},
                                               {"GIF8", "GIF"},
                                               {"BM", "BMP"},
                                               {{"II*\0", 4}, "TIFF"},
                                               {{"MM\0*", 4}, "TIFF"}}};
  for (const Magic& magic : known)
    if (bytes.starts_with(magic.bytes)) return magic.format;
  return bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP") ? "WebP" : "";
}

}  // namespace

Tensor decode_image(std::string_view bytes, const std::string& name) {
  require<FileError>(!bytes.empty(), "{}: not an image that can be read (empty file)", name);
  if (bytes.starts_with("\xff\xd8\xff")) return detail::decode_jpeg(bytes, name);
  if (bytes.starts_with(detail::png_signature)) return detail::decode_png(bytes, name);

  const Tensor image = detail::decode_other(bytes);
  if (image.defined()) return image;
  const std::string_view format = format_of(bytes);
  const bool damaged =
      format == "JPEG" || format == "PNG" || (detail::reads_other_formats() && format != "GIF");
  require<FileError>(format.empty() || damaged, "{}: {} pictures are not supported; {} are", name, format,
                     detail::reads_other_formats() ? "JPEG, PNG, WebP, TIFF, BMP and PPM" : "JPEG and PNG");
  require<FileError>(format.empty(), "{}: damaged or cut-off {}", name, format);
  throw FileError(
      fmt::format("{}: not an image that can be read (first bytes {})", name, first_bytes(bytes)));
}

Tensor load_image(const std::filesystem::path& path) { return decode_image(read_file(path), path.string()); }

}  // namespace gyre
