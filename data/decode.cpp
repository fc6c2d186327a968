#include "data/decode.h"

#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <mutex>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

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

/// While one lives, what OpenCV writes to std::cerr about damaged pictures is lost; threads may overlap.
class QuietOpenCv {
 public:
  QuietOpenCv() {
    const std::lock_guard lock(mutex);
    if (users++ != 0) return;
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
    shown = std::cerr.rdbuf(&nothing);
  }
  ~QuietOpenCv() {
    const std::lock_guard lock(mutex);
    if (--users == 0) std::cerr.rdbuf(shown);
  }
  QuietOpenCv(const QuietOpenCv&) = delete;
  QuietOpenCv& operator=(const QuietOpenCv&) = delete;

 private:
  /// Keeps no state, so that threads can share it.
  struct Nothing : std::streambuf {
    int_type overflow(int_type c) override { return traits_type::not_eof(c); }
    std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
  };
  inline static std::mutex mutex;
  inline static int users = 0;
  inline static Nothing nothing;
  inline static std::streambuf* shown = nullptr;
};

/// Other formats than JPEG: BGR, already turned by EXIF; empty if OpenCV cannot read them whole.
cv::Mat decode_with_opencv(std::string_view bytes) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return {};
  const cv::Mat data(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<char*>(bytes.data()));
  const QuietOpenCv quiet;
  try {
    return cv::imdecode(data, cv::IMREAD_COLOR);
  } catch (const cv::Exception&) {
    return {};
  }
}

}  // namespace

Tensor decode_image(std::string_view bytes, const std::string& name) {
  require<FileError>(!bytes.empty(), "{}: not an image that can be read (empty file)", name);
  if (bytes.starts_with("\xff\xd8\xff")) return detail::decode_jpeg(bytes, name);

  const bool png = bytes.starts_with(detail::png_signature);
  const cv::Mat bgr = decode_with_opencv(png ? detail::essential_png(bytes, name) : bytes);
  const bool read = !bgr.empty() && bgr.type() == CV_8UC3;
  const std::string_view format = read ? "" : format_of(bytes);
  require<FileError>(format != "GIF",
                     "{}: GIF pictures are not supported; JPEG, PNG, WebP, TIFF, BMP and PPM are", name);
  require<FileError>(format.empty(), "{}: damaged or cut-off {}", name, format);
  require<FileError>(read, "{}: not an image that can be read (first bytes {})", name, first_bytes(bytes));
  Tensor image = Tensor::empty({3, bgr.rows, bgr.cols}, DType::u8);
  std::uint8_t* out = image.mutable_data<std::uint8_t>();
  const std::int64_t plane = std::int64_t{bgr.rows} * bgr.cols;
  for (int y = 0; y < bgr.rows; ++y) {
    const std::uint8_t* row = bgr.ptr<std::uint8_t>(y);
    for (int x = 0; x < bgr.cols; ++x, ++out)
      for (int c = 0; c < 3; ++c) out[c * plane] = row[3 * x + 2 - c];
  }
  return image;
}

Tensor load_image(const std::filesystem::path& path) { return decode_image(read_file(path), path.string()); }

}  // namespace gyre
