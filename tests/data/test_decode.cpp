#include "data/decode.h"

#include <gmock/gmock.h>

#include <array>
#include <opencv2/imgcodecs.hpp>

#include "core/error.h"
#include "data/image.h"
#include "tests/data/jpeg_writer.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::JpegOptions;
using test::random_image;
using test::write_jpeg;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Bytes = std::vector<std::uint8_t>;
using Colour = std::array<int, 3>;

std::string encode(const std::string& format, const cv::Mat& picture) {
  Bytes bytes;
  EXPECT_TRUE(cv::imencode(format, picture, bytes));
  return {bytes.begin(), bytes.end()};
}

/// RGB planes as OpenCV's interleaved BGR.
cv::Mat to_bgr(const Tensor& image) {
  const int height = static_cast<int>(image.size(1)), width = static_cast<int>(image.size(2));
  cv::Mat picture(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        picture.ptr<std::uint8_t>(y)[3 * x + c] = static_cast<std::uint8_t>(image.at({2 - c, y, x}));
  return picture;
}

/// height × width pixels of one value each.
Bytes flat(const Bytes& pixel, int count) {
  Bytes pixels;
  for (int i = 0; i < count; ++i) pixels.insert(pixels.end(), pixel.begin(), pixel.end());
  return pixels;
}

Colour colour_at(const Tensor& image, std::int64_t y, std::int64_t x) {
  Colour colour{};
  for (int c = 0; c < 3; ++c) colour.at(static_cast<std::size_t>(c)) = static_cast<int>(image.at({c, y, x}));
  return colour;
}

void expect_colour(const Colour& found, const Colour& expected) {
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(found.at(c), expected.at(c), 3) << "channel " << c;
}

/// A TIFF structure with an orientation tag behind another one.
std::string exif(int orientation, bool little) {
  std::string text = little ? std::string("II*\0", 4) : std::string("MM\0*", 4);
  const auto number = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      text += static_cast<char>(value >> 8 * (little ? i : bytes - 1 - i) & 255);
  };
  number(8, 4);
  number(2, 2);
  for (const auto& [tag, value] :
       {std::pair(0x0100U, 77U), std::pair(0x0112U, static_cast<unsigned>(orientation))}) {
    number(tag, 2), number(3, 2), number(1, 4), number(value, 2), number(0, 2);
  }
  number(0, 4);
  return text;
}

TEST(Decode, PngIsExactInRgbOrder) {
  const Tensor image = random_image(3, 7, 11, 1);
  EXPECT_EQ(decode_image(encode(".png", to_bgr(image)), "x").to_vector(), image.to_vector());
  EXPECT_EQ(decode_image(encode(".bmp", to_bgr(image)), "x").to_vector(), image.to_vector());
}

TEST(Decode, AlwaysThreeChannelsOfEightBits) {
  const std::string grey = encode(".png", cv::Mat(2, 3, CV_8UC1, cv::Scalar(90)));
  const std::string alpha = encode(".png", cv::Mat(2, 3, CV_8UC4, cv::Scalar(10, 20, 30, 0)));
  const std::string deep = encode(".png", cv::Mat(2, 3, CV_16UC3, cv::Scalar(10 * 256, 20 * 256, 30 * 256)));
  const std::string grey_jpeg = write_jpeg(flat({90}, 64), 8, 8, {.stored = JCS_GRAYSCALE});
  EXPECT_EQ(colour_at(decode_image(grey, "x"), 1, 2), (Colour{90, 90, 90}));
  EXPECT_EQ(colour_at(decode_image(alpha, "x"), 1, 2), (Colour{30, 20, 10}));
  EXPECT_EQ(colour_at(decode_image(deep, "x"), 1, 2), (Colour{30, 20, 10}));
  EXPECT_EQ(decode_image(grey_jpeg, "x").shape(), (Shape{3, 8, 8}));
  expect_colour(colour_at(decode_image(grey_jpeg, "x"), 7, 7), {90, 90, 90});
}

TEST(Decode, JpegKeepsColoursAndPlaces) {
  Bytes pixels = flat({200, 40, 90}, 16 * 8);
  const Bytes below = flat({10, 220, 60}, 16 * 8);
  pixels.insert(pixels.end(), below.begin(), below.end());
  for (const bool progressive : {false, true}) {
    for (const J_COLOR_SPACE stored : {JCS_YCbCr, JCS_RGB}) {
      const std::string bytes = write_jpeg(pixels, 16, 16, {.stored = stored, .progressive = progressive});
      const Tensor image = decode_image(bytes, "x");
      ASSERT_EQ(image.shape(), (Shape{3, 16, 16}));
      expect_colour(colour_at(image, 0, 15), {200, 40, 90});
      expect_colour(colour_at(image, 15, 0), {10, 220, 60});
    }
  }
}

TEST(Decode, CmykBecomesRgb) {
  // Ink as the file means it: cyan 51, magenta 102, yellow 0, black 25 of 255.
  const Bytes ink{51, 102, 0, 25}, upside_down{204, 153, 255, 230};
  const Colour expected{184, 138, 230};
  for (const J_COLOR_SPACE stored : {JCS_CMYK, JCS_YCCK}) {
    const std::string adobe = write_jpeg(flat(upside_down, 64), 8, 8, {.stored = stored});
    const Tensor image = decode_image(adobe, "x");
    ASSERT_EQ(image.shape(), (Shape{3, 8, 8}));
    expect_colour(colour_at(image, 3, 4), expected);
  }
  const std::string plain = write_jpeg(flat(ink, 64), 8, 8, {.stored = JCS_CMYK, .adobe = false});
  expect_colour(colour_at(decode_image(plain, "x"), 3, 4), expected);
}

TEST(Decode, ContentCountsNotTheName) {
  const test::TempFolder folder;
  const Tensor image = random_image(3, 5, 5, 2);
  EXPECT_EQ(load_image(folder.write("a.jpg", encode(".png", to_bgr(image)))).to_vector(), image.to_vector());
  EXPECT_EQ(load_image(folder.write("b.png", write_jpeg(flat({1, 2, 3}, 64), 8, 8))).shape(),
            (Shape{3, 8, 8}));
}

TEST(Decode, CutOffFilesAreErrorsAtEveryLength) {
  const Tensor image = random_image(3, 24, 24, 3);
  const std::string png = encode(".png", to_bgr(image));
  Bytes pixels;
  for (const double v : image.to_vector()) pixels.push_back(static_cast<std::uint8_t>(v));
  const std::string jpeg = write_jpeg(pixels, 24, 24);
  const std::string progressive = write_jpeg(pixels, 24, 24, {.progressive = true});
  for (const auto& [bytes, reason] :
       {std::pair(jpeg, "damaged or cut-off JPEG ("), std::pair(progressive, "damaged or cut-off JPEG ("),
        std::pair(png, "cut-off PNG (")}) {
    EXPECT_EQ(decode_image(bytes, "whole").shape(), (Shape{3, 24, 24}));
    for (std::size_t size = 8; size < bytes.size(); size += size + 60 < bytes.size() ? 17 : 1)
      EXPECT_THAT(error_of<FileError>([&] { decode_image(bytes.substr(0, size), "dir/cut"); }),
                  StartsWith(std::string("dir/cut: ") + reason))
          << size << " of " << bytes.size();
  }
}

TEST(Decode, DamagedPngIsAnErrorAtEveryByte) {
  const std::string png = encode(".png", to_bgr(random_image(3, 4, 4, 5)));
  for (std::size_t i = 8; i < png.size(); ++i) {
    std::string damaged = png;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x21);
    EXPECT_THAT(error_of<FileError>([&] { decode_image(damaged, "x"); }), HasSubstr("PNG (")) << i;
  }
}

TEST(Decode, PngMetadataCauseNoNoise) {
  std::string png = encode(".png", to_bgr(random_image(3, 4, 4, 5)));
  const std::string body = "iCCPbroken";
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  png.insert(33, test::big_endian(6) + body + test::big_endian(static_cast<std::uint32_t>(sum)));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(decode_image(png, "x").to_vector(), random_image(3, 4, 4, 5).to_vector());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Decode, RefusesEnormousPictures) {
  std::string png = encode(".png", to_bgr(random_image(3, 4, 4, 5)));
  png.replace(16, 8, test::big_endian(1 << 14) + test::big_endian((1 << 13) + 1));
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17);
  png.replace(29, 4, test::big_endian(static_cast<std::uint32_t>(sum)));
  EXPECT_EQ(error_of<FileError>([&] { decode_image(png, "x"); }),
            "x: 16384 x 8193 pixels; at most 134217728 are read");
}

/// The error of a picture; nothing else may be printed.
std::string quiet_error(const std::string& bytes) {
  ::testing::internal::CaptureStderr();
  std::string text = error_of<FileError>([&] { decode_image(bytes, "x"); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  return text;
}

TEST(Decode, DamagedFilesOfKnownFormatsAreNamedInOneLine) {
  const cv::Mat picture = to_bgr(random_image(3, 24, 24, 6));
  for (const auto& [suffix, format] :
       {std::pair(".bmp", "BMP"), std::pair(".tiff", "TIFF"), std::pair(".webp", "WebP")}) {
    const std::string bytes = encode(suffix, picture);
    for (const std::size_t size : {std::size_t{16}, std::size_t{60}, bytes.size() / 2})
      EXPECT_EQ(quiet_error(bytes.substr(0, size)), std::string("x: damaged or cut-off ") + format) << size;
  }
  EXPECT_EQ(quiet_error("\x89PNG"), "x: damaged or cut-off PNG");
  EXPECT_EQ(quiet_error("GIF89a..."),
            "x: GIF pictures are not supported; JPEG, PNG, WebP, TIFF, BMP and PPM are");
}

TEST(Decode, WrongPngHeadersAreErrorsInOneLine) {
  const auto with = [](std::size_t at, const std::string& change) {
    std::string png = encode(".png", to_bgr(random_image(3, 4, 5, 7)));
    png.replace(at, change.size(), change);
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17);
    png.replace(29, 4, test::big_endian(static_cast<std::uint32_t>(sum)));
    return quiet_error(png);
  };
  EXPECT_EQ(with(16, test::big_endian(0)), "x: damaged PNG (0 x 4 pixels)");
  EXPECT_EQ(with(20, test::big_endian(0)), "x: damaged PNG (5 x 0 pixels)");
  for (const std::size_t at : {24U, 25U, 26U, 27U, 28U})
    EXPECT_EQ(with(at, "\x07"), "x: damaged PNG (header)");
}

TEST(Decode, DamagedJpegDataAreAnError) {
  std::string bytes = write_jpeg(flat({9, 99, 199}, 64 * 64), 64, 64);
  for (std::size_t i = bytes.size() - 60; i < bytes.size() - 2; ++i) bytes[i] = '\xff';
  EXPECT_THAT(error_of<FileError>([&] { decode_image(bytes, "x"); }),
              StartsWith("x: damaged or cut-off JPEG ("));
}

TEST(Decode, OtherFilesAreNamedWithTheirFirstBytes) {
  EXPECT_EQ(error_of<FileError>([] { decode_image("hello world", "a/b.png"); }),
            "a/b.png: not an image that can be read (first bytes 68 65 6c 6c 6f 20 77 6f)");
  EXPECT_EQ(error_of<FileError>([] { decode_image("", "a/b.png"); }),
            "a/b.png: not an image that can be read (empty file)");
  EXPECT_THAT(error_of<FileError>([] { load_image("no/such.png"); }), StartsWith("no/such.png"));
}

TEST(Decode, TurnsByExifAsViewersDo) {
  // Quarters: red, green / blue, grey, 16 × 8 pixels each.
  const std::array<Colour, 4> colours{{{220, 20, 20}, {20, 220, 20}, {20, 20, 220}, {128, 128, 128}}};
  Bytes pixels;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 32; ++x)
      for (const int v : colours.at(static_cast<std::size_t>(2 * (y / 8) + x / 16)))
        pixels.push_back(static_cast<std::uint8_t>(v));
  // Where the first row's start, its end, and the last row's start and end are seen (EXIF 2.3, tag 0x0112):
  // 0 = top left, 1 = top right, 2 = bottom left, 3 = bottom right.
  const std::array<std::array<std::size_t, 4>, 8> seen{{{0, 1, 2, 3},
                                                        {1, 0, 3, 2},
                                                        {3, 2, 1, 0},
                                                        {2, 3, 0, 1},
                                                        {0, 2, 1, 3},
                                                        {1, 3, 0, 2},
                                                        {3, 1, 2, 0},
                                                        {2, 0, 3, 1}}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little : {false, true}) {
      const std::string bytes = write_jpeg(pixels, 32, 16, {.exif = exif(orientation, little)});
      const Tensor image = decode_image(bytes, "x");
      ASSERT_EQ(image.shape(), orientation < 5 ? (Shape{3, 16, 32}) : (Shape{3, 32, 16}));
      for (std::size_t corner = 0; corner < 4; ++corner) {
        const std::size_t where = seen.at(static_cast<std::size_t>(orientation - 1)).at(corner);
        const std::int64_t y = where < 2 ? 0 : image.size(1) - 1, x = where % 2 ? image.size(2) - 1 : 0;
        SCOPED_TRACE(fmt::format("orientation {}, corner {}", orientation, corner));
        expect_colour(colour_at(image, y, x), colours.at(corner));
      }
    }
  }
}

TEST(Decode, BrokenExifIsIgnored) {
  const Bytes pixels = flat({50, 60, 70}, 16 * 8);
  const std::string good = exif(6, true);
  std::vector<std::string> blocks{"x", std::string(40, '\xff'), exif(0, true), exif(9, false),
                                  exif(700, true)};
  for (std::size_t size = 1; size < good.size() - 8; ++size) blocks.push_back(good.substr(0, size));
  std::string far = good;
  far[7] = '\x7f';
  blocks.push_back(far);
  for (const std::string& block : blocks)
    EXPECT_EQ(decode_image(write_jpeg(pixels, 16, 8, {.exif = block}), "x").shape(), (Shape{3, 8, 16}));
}

TEST(Decode, ExifParserSurvivesAnything) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::string block = exif(6, seed % 2 == 0);
    RandomStream stream(seed, Purpose::test);
    for (int i = 0; i < 3; ++i) block[stream.below(block.size())] = static_cast<char>(stream.below(256));
    const int orientation = detail::exif_orientation(block);
    EXPECT_TRUE(orientation >= 1 && orientation <= 8);
  }
}

TEST(Image, GreyAndRgb) {
  const Tensor image = Tensor::from(Bytes{255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255}, {3, 1, 4});
  EXPECT_EQ(to_grey(image).to_vector(), (std::vector<double>{76, 150, 29, 255}));
  EXPECT_EQ(to_rgb(to_grey(image)).shape(), (Shape{3, 1, 4}));
  EXPECT_EQ(to_grey(to_rgb(to_grey(image))).to_vector(), to_grey(image).to_vector());
  EXPECT_EQ(to_grey(image.transpose(1, 2)).to_vector(), to_grey(image).to_vector());
  EXPECT_THAT(error_of<ShapeError>([] {
                to_grey(Tensor::zeros({3, 4, 4}));
              }),
              HasSubstr("to_grey takes a u8 image [1 or 3, height, width], not f32[3, 4, 4]"));
}

TEST(Image, ShrinkingAveragesAreas) {
  const Tensor image = random_image(3, 8, 12, 9);
  const Tensor half = resize_image(image, 4, 6);
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t x = 0; x < 6; ++x) {
        double sum = 0;
        for (const int i : {0, 1})
          for (const int j : {0, 1}) sum += image.at({c, 2 * y + i, 2 * x + j});
        ASSERT_NEAR(half.at({c, y, x}), sum / 4, 0.51);
      }
}

TEST(Image, ResizingKeepsConstantsAndSizes) {
  const Tensor image = Tensor::full({1, 9, 5}, 77, DType::u8);
  for (const auto& [height, width] :
       {std::pair(3, 2), std::pair(20, 31), std::pair(3, 31), std::pair(9, 5)}) {
    const Tensor result = resize_image(image, height, width);
    ASSERT_EQ(result.shape(), (Shape{1, height, width}));
    for (const double v : result.to_vector()) ASSERT_EQ(v, 77);
  }
  EXPECT_THAT(error_of<ValueError>([&] { resize_image(image, 0, 4); }), HasSubstr("resize_image to 0 x 4"));
}

TEST(Image, FitSquareTakesTheCentre) {
  const Tensor image = random_image(3, 6, 10, 4);
  EXPECT_EQ(fit_square(image, 6).to_vector(), image.slice(2, 2, 8).to_vector());
  EXPECT_EQ(fit_square(image.transpose(1, 2), 6).to_vector(),
            image.transpose(1, 2).slice(1, 2, 8).to_vector());
  EXPECT_EQ(fit_square(image, 3).to_vector(), resize_image(image.slice(2, 2, 8), 3, 3).to_vector());
}

}  // namespace
}  // namespace gyre
