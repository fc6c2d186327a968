#include <iostream>
#include <limits>
#include <mutex>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

#include "data/decode.h"

namespace gyre::detail {

namespace {

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

/// BGR, already turned by EXIF; empty if OpenCV cannot read it whole.
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

bool reads_other_formats() { return true; }

Tensor decode_other(std::string_view bytes) {
  const cv::Mat bgr = decode_with_opencv(bytes);
  if (bgr.empty() || bgr.type() != CV_8UC3) return {};
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

}  // namespace gyre::detail
