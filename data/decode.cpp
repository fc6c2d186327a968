#include "data/decode.h"

#include <cstdint>
#include <limits>
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

/// Other formats than JPEG: BGR, already turned by EXIF; empty if OpenCV cannot read them whole.
cv::Mat decode_with_opencv(std::string_view bytes) {
  static const auto silence = cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  static_cast<void>(silence);
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return {};
  const cv::Mat data(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<char*>(bytes.data()));
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
  require<FileError>(!png || !bgr.empty(), "{}: damaged PNG", name);
  require<FileError>(!bgr.empty() && bgr.type() == CV_8UC3,
                     "{}: not an image that can be read (first bytes {})", name, first_bytes(bytes));
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
