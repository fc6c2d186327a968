#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <png.h>
#include <zlib.h>

#include "core/error.h"
#include "data/decode.h"
#include "data/image.h"

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

struct Chunks {
  std::string pixels;  ///< a PNG with the chunks that carry them; libpng prints warnings about the others
  int orientation = 1;
};

/// Throws FileError if the file is cut off, a checksum differs or its header is wrong.
Chunks essential_chunks(std::string_view bytes, const std::string& name) {
  constexpr std::size_t frame = 12;  // length, type and checksum around a chunk's data
  Chunks kept{std::string(png_signature)};
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
    if (is_critical(type)) kept.pixels += chunk;
    if (type == "eXIf") kept.orientation = exif_orientation(chunk.substr(8, length));
    at += chunk.size();
  }
  return kept;
}

/// libpng reports errors by a jump: no function that may be jumped out of owns anything.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {});
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, std::size_t count) {
      PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
      if (count > reader.bytes_.size()) png_error(png, "cut off");
      std::memcpy(to, reader.bytes_.data(), count);
      reader.bytes_.remove_prefix(count);
    });
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// False if libpng gave up: see message(). Rows are RGB from here on.
  bool read_header() {
    if (setjmp(jump_)) return false;
    png_read_info(png_, info_);
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  /// Fills height × width × 3 through pointers to its rows.
  bool read_pixels(png_bytepp rows) {
    if (setjmp(jump_)) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  const char* message() const { return message_; }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader.message_, sizeof reader.message_, "%s", message);
    std::longjmp(reader.jump_, 1);
  }

  std::string_view bytes_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  char message_[128] = {};
};

}  // namespace

Tensor decode_png(std::string_view bytes, const std::string& name) {
  const Chunks chunks = essential_chunks(bytes, name);
  PngReader reader(chunks.pixels);
  const auto check = [&](bool good) {
    require<FileError>(good, "{}: damaged PNG ({})", name, reader.message());
  };
  check(reader.read_header());
  const std::int64_t height = reader.height(), width = reader.width();
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width * 3));
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < height; ++y) rows.push_back(pixels.data() + y * width * 3);
  check(reader.read_pixels(rows.data()));
  Tensor image = Tensor::empty({3, height, width}, DType::u8);
  std::uint8_t* out = image.mutable_data<std::uint8_t>();
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t i = c; i < pixels.size(); i += 3) *out++ = pixels[i];
  return apply_orientation(image, chunks.orientation);
}

}  // namespace gyre::detail
