#include <gmock/gmock.h>
#include <zlib.h>

#include <array>
#include <opencv2/imgcodecs.hpp>

#include "core/error.h"
#include "data/decode.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::big_endian;
using test::error_of;
using ::testing::StartsWith;

std::string chunk(const std::string& type, const std::string& data) {
  const std::string covered = type + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(covered.data()), static_cast<uInt>(covered.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + covered +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string result(size, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(result.data()), &size,
                     reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size())),
            Z_OK);
  result.resize(size);
  return result;
}

struct Form {
  int width, height, depth, colour;
  bool interlaced = false;
};

/// `rows` are the bytes of each row behind its filter, 0 for none; `between` stands before the pixels.
std::string png(const Form& form, const std::string& rows, const std::string& between = "") {
  std::string header = big_endian(static_cast<std::uint32_t>(form.width)) +
                       big_endian(static_cast<std::uint32_t>(form.height));
  for (const int byte : {form.depth, form.colour, 0, 0, form.interlaced ? 1 : 0})
    header += static_cast<char>(byte);
  return std::string(detail::png_signature) + chunk("IHDR", header) + between +
         chunk("IDAT", deflated(rows)) + chunk("IEND", "");
}

std::string text(std::initializer_list<int> bytes) {
  std::string result;
  for (const int byte : bytes) result += static_cast<char>(byte);
  return result;
}

TEST(Png, PalettesAndFewBitsBecomeColours) {
  const std::string palette = chunk("PLTE", text({10, 20, 30, 40, 50, 60, 70, 80, 90, 255, 0, 128}));
  const std::string clear = chunk("tRNS", text({0, 128}));
  const std::string two_bits = png({4, 1, 2, 3}, text({0, 0b00'01'10'11}), palette + clear);
  EXPECT_EQ(decode_image(two_bits, "x").to_vector(),
            (std::vector<double>{10, 40, 70, 255, 20, 50, 80, 0, 30, 60, 90, 128}));
  const std::string one_bit = png({3, 1, 1, 0}, text({0, 0b101'00000}));
  EXPECT_EQ(decode_image(one_bit, "x").to_vector(),
            (std::vector<double>{255, 0, 255, 255, 0, 255, 255, 0, 255}));
  const std::string grey_alpha = png({1, 2, 8, 4}, text({0, 7, 0, 0, 9, 255}));
  EXPECT_EQ(decode_image(grey_alpha, "x").to_vector(), (std::vector<double>{7, 9, 7, 9, 7, 9}));
}

TEST(Png, SixteenBitsKeepTheHighByte) {
  EXPECT_EQ(decode_image(png({2, 1, 16, 0}, text({0, 3, 255, 200, 128})), "x").to_vector(),
            (std::vector<double>{3, 200, 3, 200, 3, 200}));
}

TEST(Png, InterlacedRowsFindTheirPlace) {
  // Adam7 of 3 x 3: passes 1, 4, 5, 6 and 7 hold the pixels (y, x) below; 2 and 3 are empty.
  const std::string rows = text({0, 0,             // (0, 0)
                                 0, 2,             // pass 4: (0, 2)
                                 0, 20, 22,        // pass 5: (2, 0) (2, 2)
                                 0, 1, 0, 21,      // pass 6: (0, 1), (2, 1)
                                 0, 10, 11, 12});  // pass 7: row 1
  const std::vector<double> plane{0, 1, 2, 10, 11, 12, 20, 21, 22};
  const std::vector<double> got = decode_image(png({3, 3, 8, 0, true}, rows), "x").to_vector();
  EXPECT_EQ(std::vector<double>(got.begin(), got.begin() + 9), plane);
}

TEST(Png, TurnsByExif) {
  const std::string exif("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26);
  const Tensor image = decode_image(png({2, 1, 8, 0}, text({0, 5, 6}), chunk("eXIf", exif)), "x");
  ASSERT_EQ(image.shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(image.at({0, 0, 0}), 5);
  EXPECT_EQ(image.at({0, 1, 0}), 6);
}

TEST(Png, ReadsWhatOpenCvReads) {
  for (const int type : {CV_8UC1, CV_8UC3, CV_8UC4, CV_16UC1, CV_16UC3, CV_16UC4}) {
    cv::Mat picture(13, 7, type);
    cv::randu(picture, 0, CV_MAT_DEPTH(type) == CV_8U ? 256 : 65536);
    std::vector<std::uint8_t> bytes;
    ASSERT_TRUE(cv::imencode(".png", picture, bytes));
    const cv::Mat bgr = cv::imdecode(bytes, cv::IMREAD_COLOR);
    const Tensor image = decode_image({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "x");
    for (int y = 0; y < 13; ++y)
      for (int x = 0; x < 7; ++x)
        for (int c = 0; c < 3; ++c)
          ASSERT_EQ(image.at({c, y, x}), bgr.ptr<std::uint8_t>(y)[3 * x + 2 - c]) << type;
  }
}

TEST(Png, WrongPixelsAreErrorsInOneLine) {
  ::testing::internal::CaptureStderr();
  const auto error = [](const std::string& bytes) {
    return error_of<FileError>([&] { decode_image(bytes, "x"); });
  };
  EXPECT_THAT(error(png({4, 4, 8, 0}, text({0, 1, 2, 3, 4}))), StartsWith("x: damaged PNG ("));
  EXPECT_THAT(error(png({2, 1, 8, 0}, text({9, 1, 2}))), StartsWith("x: damaged PNG ("));  // no such filter
  EXPECT_THAT(error(png({2, 1, 8, 3}, text({0, 1, 2}))), StartsWith("x: damaged PNG ("));  // no palette
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace gyre
