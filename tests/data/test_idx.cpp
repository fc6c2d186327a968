#include "data/idx.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::gzip_bytes;
using test::idx_bytes;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string pixels = test::random_bytes(3 * 4 * 5, 1);
const std::string images = idx_bytes({3, 4, 5}, pixels);
const std::string labels = idx_bytes({3}, std::string("\1\0\2", 3));

std::string images_error(const TempFolder& folder, std::string_view bytes) {
  const auto path = folder.write("images", bytes);
  const std::string text = error_of<FileError>([&] { read_idx_images(path); });
  EXPECT_THAT(text, StartsWith(path.string() + ": "));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  return text;
}

void expect_pixels(const Tensor& read) {
  ASSERT_EQ(read.shape(), (Shape{3, 4, 5}));
  const std::uint8_t* values = read.data<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i)
    ASSERT_EQ(values[i], static_cast<std::uint8_t>(pixels[i])) << i;
}

TEST(Idx, ReadsPlainAndGzipByContent) {
  const TempFolder folder;
  expect_pixels(read_idx_images(folder.write("plain.gz", images)));
  expect_pixels(read_idx_images(folder.write("packed", gzip_bytes(images))));
}

TEST(Idx, ReadsSeveralGzipMembers) {
  const TempFolder folder;
  const std::string members = gzip_bytes(images.substr(0, 30)) + gzip_bytes(images.substr(30));
  expect_pixels(read_idx_images(folder.write("members", members)));
}

TEST(Idx, FindsEverySpelling) {
  for (const char* middle : {"-images-idx3-ubyte", "-images.idx3-ubyte"}) {
    for (const char* suffix : {"", ".gz"}) {
      const TempFolder folder;
      const auto path = folder.write(std::string("train") + middle + suffix, images);
      EXPECT_EQ(find_idx_file(folder.path(), "train-images", 3), path);
    }
  }
}

TEST(Idx, MissingFileNamesWhatWasTried) {
  const TempFolder folder;
  const std::string text = error_of<FileError>([&] { find_idx_file(folder.path(), "t10k-labels", 1); });
  EXPECT_THAT(text, StartsWith(folder.path().string()));
  for (const char* name : {"t10k-labels-idx1-ubyte,", "t10k-labels-idx1-ubyte.gz", "t10k-labels.idx1-ubyte,",
                           "t10k-labels.idx1-ubyte.gz"})
    EXPECT_THAT(text, HasSubstr(name));
  const auto absent = folder.path() / "absent";
  EXPECT_EQ(error_of<FileError>([&] { find_idx_file(absent, "train-images", 3); }),
            absent.string() +
                ": no such folder (data.path; give another with --set data.path=DIR or, for eval, "
                "--data DIR)");
  const auto file = folder.write("file", "");
  EXPECT_THAT(error_of<FileError>([&] { find_idx_file(file, "train-images", 3); }),
              StartsWith(file.string() + ": not a folder (data.path; "));
}

TEST(Idx, RefusesWrongMagicNumbers) {
  const TempFolder folder;
  EXPECT_THAT(images_error(folder, ""), EndsWith("0 bytes, too short for an IDX file"));
  EXPECT_THAT(images_error(folder, "\x89PNG data"), EndsWith("magic number 0x89504e47: not an IDX file"));
  std::string other_type = images;
  other_type[2] = 0x0D;
  EXPECT_THAT(images_error(folder, other_type), HasSubstr("element type 0x0d instead of 0x08"));
  std::string other_rank = images;
  other_rank[3] = 4;
  EXPECT_THAT(images_error(folder, other_rank), HasSubstr("4 dimensions where images have 3"));
  EXPECT_THAT(images_error(folder, images.substr(0, 11)), HasSubstr("header: expected 16 bytes, found 11"));
}

TEST(Idx, RefusesMislabelledFiles) {
  const TempFolder folder;
  EXPECT_THAT(images_error(folder, labels), HasSubstr("a file of labels where images are expected"));
  const auto path = folder.write("labels", gzip_bytes(images));
  EXPECT_THAT(error_of<FileError>([&] { read_idx_labels(path); }),
              HasSubstr("a file of images where labels are expected"));
}

TEST(Idx, RefusesWrongLengthsWithBothSizes) {
  const TempFolder folder;
  const std::string cut = images.substr(0, images.size() - 1);
  for (const std::string& bytes : {cut, gzip_bytes(cut)})
    EXPECT_THAT(images_error(folder, bytes),
                EndsWith("truncated: expected 76 bytes for 3 x 4 x 5 images, found 75"));
  for (const std::string& bytes : {images + "z", gzip_bytes(images + "z")})
    EXPECT_THAT(images_error(folder, bytes),
                EndsWith("overlong: expected 76 bytes for 3 x 4 x 5 images, found 77"));
}

TEST(Idx, RefusesHeadersThatClaimTooMuchOrNothing) {
  const TempFolder folder;
  const std::string huge = idx_bytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, pixels);
  const std::string large = idx_bytes({0x7FFFFFFF, 28, 28}, pixels);
  EXPECT_THAT(images_error(folder, huge), HasSubstr("impossible size 4294967295 x 4294967295 x 4294967295"));
  for (const std::string& bytes : {large, gzip_bytes(large)})
    EXPECT_THAT(images_error(folder, bytes), HasSubstr("truncated: expected 1683627179264 bytes"));
  EXPECT_THAT(images_error(folder, idx_bytes({0, 28, 28}, "")), HasSubstr("holds no images"));
}

TEST(Idx, RefusesDamagedGzip) {
  const TempFolder folder;
  const std::string packed = gzip_bytes(images);
  for (std::size_t size = 2; size < packed.size(); ++size)
    EXPECT_THAT(images_error(folder, packed.substr(0, size)), HasSubstr("gzip data end too early")) << size;
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  EXPECT_THAT(images_error(folder, wrong_sum), EndsWith("corrupt gzip data (incorrect data check)"));
  std::string wrong_method = packed;
  wrong_method[2] = 7;
  EXPECT_THAT(images_error(folder, wrong_method), HasSubstr("corrupt gzip data"));
  EXPECT_THAT(images_error(folder, packed + "junk"), HasSubstr("4 bytes that are not gzip follow"));
}

TEST(Idx, EveryFlippedBitOfGzipIsAnErrorOrHarmless) {
  const TempFolder folder;
  const std::string packed = gzip_bytes(images);
  for (std::size_t i = 10; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto path = folder.write("images", damaged);
    try {
      expect_pixels(read_idx_images(path));
    } catch (const FileError&) {
    }
  }
}

TEST(IdxDataset, GivesImagesAndLabels) {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte", images);
  folder.write("train-labels.idx1-ubyte.gz", gzip_bytes(labels));
  const IdxDataset data(folder.path(), "train");
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.channels(), 1);
  EXPECT_EQ(data.image_size(), 0);  // 4 x 5 is no square
  EXPECT_EQ(data.class_names(), (std::vector<std::string>{"0", "1", "2"}));
  const Sample sample = data.get(2);
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(sample.image.shape(), (Shape{1, 4, 5}));
  EXPECT_EQ(sample.image.at({0, 3, 4}), static_cast<std::uint8_t>(pixels.back()));
  EXPECT_THAT(error_of<ValueError>([&] { data.get(3); }), HasSubstr("sample 3 of 3"));
}

TEST(IdxDataset, RefusesLabelsOutOfRange) {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte", images);
  const auto path = folder.write("train-labels-idx1-ubyte", labels);
  EXPECT_EQ(error_of<FileError>([&] { IdxDataset(folder.path(), "train", "idx", 2); }),
            path.string() + ": label 2 at index 2; allowed are 0 to 1");
  const IdxDataset more(folder.path(), "train", "idx", 5, {"a", "b"});
  EXPECT_EQ(more.class_names(), (std::vector<std::string>{"a", "b", "2", "3", "4"}));
}

TEST(IdxDataset, RefusesCountsThatDiffer) {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte", images);
  folder.write("train-labels-idx1-ubyte", idx_bytes({4}, "\1\1\1\1"));
  EXPECT_THAT(error_of<FileError>([&] { IdxDataset(folder.path(), "train"); }),
              AllOf(HasSubstr("train-images-idx3-ubyte: 3 images, but 4 labels in"),
                    HasSubstr("train-labels-idx1-ubyte")));
}

}  // namespace
}  // namespace gyre
