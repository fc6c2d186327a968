#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <array>

#include "core/error.h"
#include "data/decode.h"
#include "data/image.h"

namespace gyre::detail {

namespace {

/// Warnings of libjpeg after which pixels are missing or invented.
bool spoils_pixels(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

/// libjpeg reports errors by a jump: no function that may be jumped out of owns anything.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { self(info)->fail(info); };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && spoils_pixels(info->err->msg_code)) self(info)->fail(info);
    };
    errors_.output_message = [](j_common_ptr) {};
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// False if libjpeg gave up: see message().
  bool read_header(std::string_view bytes) {
    if (setjmp(jump_)) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// Fills three planes of height × width.
  bool read_pixels(std::uint8_t* planes) {
    if (setjmp(jump_)) return false;
    const J_COLOR_SPACE stored = info_.jpeg_color_space;
    info_.out_color_space = stored == JCS_GRAYSCALE                    ? JCS_GRAYSCALE
                            : stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK
                                                                       : JCS_RGB;
    jpeg_start_decompress(&info_);
    const std::size_t width = info_.output_width, plane = width * info_.output_height;
    const std::size_t components = static_cast<std::size_t>(info_.output_components);
    JSAMPARRAY row = info_.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info_), JPOOL_IMAGE,
                                             static_cast<JDIMENSION>(width * components), 1);
    while (info_.output_scanline < info_.output_height) {
      std::uint8_t* out = planes + info_.output_scanline * width;
      jpeg_read_scanlines(&info_, row, 1);
      if (info_.out_color_space == JCS_RGB) {
        for (std::size_t c = 0; c < 3; ++c)
          for (std::size_t x = 0; x < width; ++x) out[c * plane + x] = row[0][3 * x + c];
      } else {
        for (std::size_t x = 0; x < width; ++x) {
          const std::array<std::uint8_t, 3> rgb = to_rgb_pixel(row[0] + x * components);
          for (std::size_t c = 0; c < 3; ++c) out[c * plane + x] = rgb[c];
        }
      }
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  std::int64_t height() const { return info_.image_height; }
  std::int64_t width() const { return info_.image_width; }
  const char* message() const { return message_; }

  /// To be asked before read_pixels(), which lets the markers go.
  int orientation() const {
    static constexpr std::string_view exif("Exif\0\0", 6);
    for (jpeg_saved_marker_ptr marker = info_.marker_list; marker; marker = marker->next) {
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (data.starts_with(exif)) return exif_orientation(data.substr(exif.size()));
    }
    return 1;
  }

 private:
  static JpegReader* self(j_common_ptr info) { return static_cast<JpegReader*>(info->client_data); }

  [[noreturn]] void fail(j_common_ptr info) {
    info->err->format_message(info, message_);
    std::longjmp(jump_, 1);
  }

  /// Of a grey or CMYK pixel.
  std::array<std::uint8_t, 3> to_rgb_pixel(const std::uint8_t* p) const {
    if (info_.out_color_space == JCS_GRAYSCALE) return {p[0], p[0], p[0]};
    // Adobe stores ink upside down: 255 is none.
    const int flip = info_.saw_Adobe_marker ? 0 : 255;
    const int light = p[3] ^ flip;
    const auto mix = [&](int ink) { return static_cast<std::uint8_t>(((ink ^ flip) * light + 127) / 255); };
    return {mix(p[0]), mix(p[1]), mix(p[2])};
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  const bool little = tiff.starts_with("II");
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | static_cast<std::uint8_t>(tiff[at + (little ? bytes - 1 - i : i)]);
    return value;
  };
  if (tiff.size() < 8 || !(little || tiff.starts_with("MM")) || number(2, 2) != 42) return 1;
  const std::size_t directory = number(4, 4);
  if (directory > tiff.size() - 2) return 1;
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) return 1;
    constexpr std::uint32_t orientation = 0x0112, short_type = 3;
    if (number(entry, 2) != orientation) continue;
    const std::uint32_t value = number(entry + 8, 2);
    return number(entry + 2, 2) == short_type && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Tensor decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegReader reader;
  const auto check = [&](bool good) {
    require<FileError>(good, "{}: damaged or cut-off JPEG ({})", name, reader.message());
  };
  check(reader.read_header(bytes));
  const std::int64_t height = reader.height(), width = reader.width();
  require<FileError>(height * width <= most_pixels, "{}: {} x {} pixels; at most {} are read", name, width,
                     height, most_pixels);
  const int orientation = reader.orientation();
  Tensor image = Tensor::empty({3, height, width}, DType::u8);
  check(reader.read_pixels(image.mutable_data<std::uint8_t>()));
  return apply_orientation(image, orientation);
}

}  // namespace gyre::detail
