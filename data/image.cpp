#include "data/image.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <string_view>

#include "core/error.h"

namespace gyre {

namespace {

void check_image(const Tensor& image, std::string_view what) {
  const bool good = image.defined() && image.dtype() == DType::u8 && image.rank() == 3 &&
                    (image.size(0) == 1 || image.size(0) == 3) && image.numel() > 0;
  require<ShapeError>(good, "{} takes a u8 image [1 or 3, height, width], not {}", what,
                      image.defined() ? image.str() : "an undefined tensor");
}

/// Loader threads are the parallelism here: OpenCV starts none of its own.
void keep_opencv_serial() {
  static const bool once = [] {
    cv::setNumThreads(1);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

Tensor to_grey(const Tensor& image) {
  check_image(image, "to_grey");
  const Tensor source = image.contiguous();
  if (image.size(0) == 1) return source;
  const std::int64_t plane = image.size(1) * image.size(2);
  Tensor result = Tensor::empty({1, image.size(1), image.size(2)}, DType::u8);
  const std::uint8_t* rgb = source.data<std::uint8_t>();
  std::uint8_t* grey = result.mutable_data<std::uint8_t>();
  for (std::int64_t i = 0; i < plane; ++i)
    grey[i] = static_cast<std::uint8_t>(
        (299 * rgb[i] + 587 * rgb[plane + i] + 114 * rgb[2 * plane + i] + 500) / 1000);
  return result;
}

Tensor to_rgb(const Tensor& image) {
  check_image(image, "to_rgb");
  if (image.size(0) == 3) return image.contiguous();
  return image.expand({3, image.size(1), image.size(2)}).contiguous();
}

Tensor resize_image(const Tensor& image, std::int64_t height, std::int64_t width) {
  check_image(image, "resize_image");
  constexpr std::int64_t most = 1 << 15;
  require<ValueError>(height > 0 && width > 0 && height <= most && width <= most,
                      "resize_image to {} x {}; allowed are 1 to {}", height, width, most);
  keep_opencv_serial();
  // A crop needs no copy: OpenCV takes rows at any distance.
  const Tensor source = image.strides()[2] == 1 && image.strides()[1] > 0 ? image : image.contiguous();
  const auto row_bytes = static_cast<std::size_t>(source.strides()[1]);
  const int rows = static_cast<int>(image.size(1)), columns = static_cast<int>(image.size(2));
  const cv::Size size(static_cast<int>(width), static_cast<int>(height));
  const bool shrinks = height <= rows && width <= columns;
  Tensor result = Tensor::empty({image.size(0), height, width}, DType::u8);
  std::uint8_t* out = result.mutable_data<std::uint8_t>();
  for (std::int64_t c = 0; c < image.size(0); ++c) {
    const std::uint8_t* in = source.data<std::uint8_t>() + c * source.strides()[0];
    const cv::Mat from(rows, columns, CV_8UC1, const_cast<std::uint8_t*>(in), row_bytes);
    cv::Mat to(size, CV_8UC1, out + c * height * width);
    cv::resize(from, to, size, 0, 0, shrinks ? cv::INTER_AREA : cv::INTER_CUBIC);
  }
  return result;
}

Tensor fit_square(const Tensor& image, std::int64_t side) {
  check_image(image, "fit_square");
  const std::int64_t height = image.size(1), width = image.size(2), shorter = std::min(height, width);
  const std::int64_t top = (height - shorter) / 2, left = (width - shorter) / 2;
  const Tensor square = image.slice(1, top, top + shorter).slice(2, left, left + shorter);
  return shorter == side ? square.contiguous() : resize_image(square, side, side);
}

Tensor apply_orientation(const Tensor& image, int orientation) {
  check_image(image, "apply_orientation");
  if (orientation <= 1 || orientation > 8) return image.contiguous();
  const Tensor source = image.contiguous();
  const std::int64_t height = image.size(1), width = image.size(2), last = height * width - 1;
  // Source offset of output pixel (y, x) is start + y * down + x * right.
  std::int64_t start = 0, down = width, right = 1;
  switch (orientation) {
    case 2: start = width - 1, right = -1; break;
    case 3: start = last, down = -width, right = -1; break;
    case 4: start = last - width + 1, down = -width; break;
    case 5: down = 1, right = width; break;
    case 6: start = last - width + 1, down = 1, right = -width; break;
    case 7: start = last, down = -1, right = -width; break;
    default: start = width - 1, down = -1, right = width; break;
  }
  const bool turned = orientation >= 5;
  Tensor result = Tensor::empty({image.size(0), turned ? width : height, turned ? height : width}, DType::u8);
  std::uint8_t* out = result.mutable_data<std::uint8_t>();
  for (std::int64_t c = 0; c < image.size(0); ++c) {
    const std::uint8_t* in = source.data<std::uint8_t>() + c * height * width + start;
    for (std::int64_t y = 0; y < result.size(1); ++y)
      for (std::int64_t x = 0; x < result.size(2); ++x) *out++ = in[y * down + x * right];
  }
  return result;
}

}  // namespace gyre
