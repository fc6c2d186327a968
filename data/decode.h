#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace gyre {

/// u8 [3, H, W] RGB from JPEG, PNG, WebP, TIFF, BMP and PPM (portable builds: JPEG and PNG), chosen by
/// content, never by file name.
/// Grey is repeated, CMYK and YCCK are converted, alpha is dropped, 16 bits become 8. Pictures are turned by
/// their EXIF tag, as viewers show them; a broken EXIF block is ignored. A cut-off or damaged file is an
/// error: FileError, "NAME: reason", and nothing is written to standard error. A JPEG or PNG may have up to
/// 2^27 pixels.
Tensor decode_image(std::string_view bytes, const std::string& name);
Tensor load_image(const std::filesystem::path& path);

namespace detail {
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;
inline constexpr std::string_view png_signature = "\x89PNG\r\n\x1a\n";
/// decode_image for bytes that begin like a JPEG.
Tensor decode_jpeg(std::string_view bytes, const std::string& name);
/// The same for PNG.
Tensor decode_png(std::string_view bytes, const std::string& name);
/// The same for the other formats; undefined if the picture cannot be read whole.
Tensor decode_other(std::string_view bytes);
/// False in portable builds, which come without OpenCV's imgcodecs.
bool reads_other_formats();
/// Orientation tag of a TIFF structure as EXIF holds it; 1 if absent or damaged.
int exif_orientation(std::string_view tiff);
}  // namespace detail

}  // namespace gyre
