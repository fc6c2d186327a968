#include <gmock/gmock.h>

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <set>

#include "core/error.h"
#include "data/fashion_mnist.h"
#include "data/image_folder.h"
#include "data/splits.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using test::error_of;
using test::RandomDataset;
using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string png(int grey, int height = 6, int width = 9) {
  std::vector<unsigned char> bytes;
  cv::imencode(".png", cv::Mat(height, width, CV_8UC3, cv::Scalar::all(grey)), bytes);
  return {bytes.begin(), bytes.end()};
}

/// IDX files of `train` and `test` images 6 x 6, labels 0 to 3.
void write_idx(const TempFolder& folder, std::uint32_t train, std::uint32_t test) {
  for (const auto& [split, count] : {std::pair("train", train), std::pair("t10k", test)}) {
    std::string labels;
    for (std::uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % 4);
    folder.write(fmt::format("{}-images-idx3-ubyte", split),
                 test::idx_bytes({count, 6, 6}, test::random_bytes(36 * count, count)));
    folder.write(fmt::format("{}-labels-idx1-ubyte", split), test::idx_bytes({count}, labels));
  }
}

DataConfig idx_config(const TempFolder& folder) {
  DataConfig config;
  config.dataset = "idx";
  config.path = folder.path().string();
  config.pad_to = 8;
  config.holdout = 5;
  return config;
}

TEST(ImageFolder, ClassesAndFilesInByteOrder) {
  const TempFolder folder;
  int grey = 0;
  for (const char* name : {"2/b.png", "10/z.png", "1/a.png", "2/B.png", "Z/x.jpg", "a/\xc3\xa9.png"})
    folder.write(name, png(++grey));
  folder.write(".ipynb_checkpoints/c.png", png(99));
  folder.write("1/.hidden", "no image");
  folder.write("notes.txt", "no class");
  const ImageFolder data(folder.path());
  EXPECT_THAT(data.class_names(), ElementsAre("1", "10", "2", "Z", "a"));
  EXPECT_EQ(data.size(), 6);
  EXPECT_EQ(data.channels(), 3);
  EXPECT_EQ(data.path(2), folder.path() / "2" / "B.png");
  const std::vector<std::pair<int, int>> expected{{0, 3}, {1, 2}, {2, 4}, {2, 1}, {3, 5}, {4, 6}};
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const Sample sample = data.get(i);
    EXPECT_EQ(sample.label, expected[static_cast<std::size_t>(i)].first);
    EXPECT_EQ(sample.image.shape(), (Shape{3, 6, 9}));
    EXPECT_EQ(sample.image.at({1, 5, 8}), expected[static_cast<std::size_t>(i)].second);
  }
}

TEST(ImageFolder, TakesOnlyExtensionsOfPictures) {
  const TempFolder folder;
  const std::vector<std::string> taken{"a.jpg",  "b.JPEG", "c.Png", "d.webp", "e.tif",
                                       "f.tiff", "g.bmp",  "h.ppm", "i.pgm",  "j.PNM"};
  for (const std::string& name : taken) folder.write("class/" + name, png(1));
  for (const char* name : {"Thumbs.db", "labels.txt", "k.png.part", "png", "l.gif"})
    folder.write(std::string("class/") + name, "no image");
  const ImageFolder data(folder.path());
  ASSERT_EQ(data.size(), 10);
  for (std::int64_t i = 0; i < data.size(); ++i)
    EXPECT_EQ(data.path(i).filename(), taken[static_cast<std::size_t>(i)]);
}

TEST(ImageFolder, RefusesEmptyClassesByName) {
  const TempFolder folder;
  folder.write("full/a.png", png(1));
  folder.write("empty/.hidden", "");
  folder.write("empty/notes.txt", "");
  folder.write("hollow/inner/a.png", png(1));
  EXPECT_EQ(error_of<FileError>([&] { ImageFolder(folder.path()); }),
            folder.path().string() + ": class folders without images: empty, hollow");
}

TEST(ImageFolder, RefusesFoldersThatHoldNoClasses) {
  const TempFolder folder;
  EXPECT_EQ(error_of<FileError>([&] { ImageFolder(folder.path()); }),
            folder.path().string() + ": no class folders");
  const auto absent = folder.path() / "absent";
  EXPECT_THAT(error_of<FileError>([&] { ImageFolder{absent}; }),
              HasSubstr(absent.string() + ": no such folder (data.path; "));
}

TEST(ImageFolder, NamesFilesThatAreNoImages) {
  const TempFolder folder;
  const auto path = folder.write("a/b.png", "text");
  const ImageFolder data(folder.path());
  EXPECT_THAT(error_of<FileError>([&] { data.get(0); }), HasSubstr(path.string() + ": not an image"));
  EXPECT_THAT(error_of<ValueError>([&] { data.get(1); }), HasSubstr("sample 1 of 1"));
}

TEST(Split, HoldoutAndRestPartitionTheData) {
  const auto data = std::make_shared<RandomDataset>(40);
  const auto [rest, held] = split_holdout(data, 9, 3);
  EXPECT_EQ(rest->size(), 31);
  EXPECT_EQ(held->size(), 9);
  std::set<std::int64_t> seen;
  for (const auto& part : {rest, held}) {
    const auto& indices = dynamic_cast<const Subset&>(*part).indices();
    EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
    seen.insert(indices.begin(), indices.end());
    for (std::int64_t i = 0; i < part->size(); ++i)
      EXPECT_EQ(part->get(i).image.to_vector(),
                data->get(indices[static_cast<std::size_t>(i)]).image.to_vector());
  }
  EXPECT_EQ(seen.size(), 40U);
  const auto indices = [&](std::uint64_t seed) {
    return dynamic_cast<const Subset&>(*split_holdout(data, 9, seed).second).indices();
  };
  EXPECT_EQ(indices(3), indices(3));
  EXPECT_NE(indices(3), indices(4));
}

TEST(Split, RefusesWrongCounts) {
  const auto data = std::make_shared<RandomDataset>(4);
  EXPECT_EQ(error_of<ValueError>([&] { split_holdout(data, 4, 0); }),
            "data.holdout: 4 of 4 training images; allowed are 0 to 3");
  EXPECT_THAT(error_of<ValueError>([&] { split_holdout(data, -1, 0); }), HasSubstr("data.holdout: -1"));
  EXPECT_THAT(error_of<ValueError>([&] { Subset(data, {0, 4}); }), HasSubstr("index 4 of a subset"));
  EXPECT_THAT(error_of<ValueError>([&] { Subset(data, {0}).get(1); }),
              HasSubstr("sample 1 of a subset of 1"));
  EXPECT_EQ(take_first(data, 0)->size(), 4);
  EXPECT_EQ(take_first(data, 9)->size(), 4);
  EXPECT_EQ(take_first(data, 3)->size(), 3);
}

TEST(OpenData, SplitsLimitsAndPreprocessing) {
  const TempFolder folder;
  write_idx(folder, 20, 7);
  DataConfig config = idx_config(folder);
  DataSplits splits = open_data(config, 1);
  EXPECT_EQ(splits.train->size(), 15);
  EXPECT_EQ(splits.holdout->size(), 5);
  EXPECT_EQ(splits.test->size(), 7);
  EXPECT_EQ(splits.train->classes(), 4);
  EXPECT_EQ(splits.preprocessing, (Preprocessing{1, 6, 8, {0.5}, {0.5}}));
  config.limit_train = 4;
  config.limit_test = 3;
  config.pad_to = 0;
  config.mean = {0.1};
  config.std = {0.2};
  const DataSplits limited = open_data(config, 1);
  EXPECT_EQ(limited.train->size(), 4);
  EXPECT_EQ(limited.train->get(3).image.to_vector(), splits.train->get(3).image.to_vector());
  EXPECT_EQ(limited.holdout->size(), 5);
  EXPECT_EQ(limited.test->size(), 3);
  EXPECT_EQ(limited.preprocessing, (Preprocessing{1, 6, 6, {0.1}, {0.2}}));
  config.holdout = 0;
  config.limit_train = 0;
  splits = open_data(config, 1);
  EXPECT_EQ(splits.holdout, nullptr);
  EXPECT_EQ(splits.train->size(), 20);
}

TEST(OpenData, RefusesConfigurationsThatDoNotFit) {
  const TempFolder folder;
  write_idx(folder, 20, 7);
  const auto error = [&](auto change) {
    DataConfig config = idx_config(folder);
    change(config);
    return error_of<ValueError>([&] { open_data(config, 1); });
  };
  EXPECT_EQ(error([](DataConfig& c) { c.dataset = "mnist"; }),
            "data.dataset \"mnist\"; allowed are fashion_mnist, idx and image_folder");
  EXPECT_THAT(error([](DataConfig& c) { c.path = ""; }), HasSubstr("data.path must name"));
  EXPECT_EQ(error([](DataConfig& c) { c.pad_to = 9; }),
            "data.pad_to: images of side 6 cannot be padded evenly to 9");
  EXPECT_EQ(error([](DataConfig& c) {
              c.mean = {0.1, 0.2, 0.3};
            }),
            "data.mean: 3 values, images have 1 channel");
  EXPECT_THAT(error([](DataConfig& c) { c.holdout = 20; }), HasSubstr("data.holdout: 20 of 20"));
  DataConfig config = idx_config(folder);
  config.classes = 3;
  EXPECT_THAT(error_of<FileError>([&] { open_data(config, 1); }),
              HasSubstr("label 3 at index 3; allowed are 0 to 2"));
}

TEST(OpenData, FoldersMustAgreeOnClasses) {
  const TempFolder folder;
  for (const char* name : {"train/a/1.png", "train/a/2.png", "train/b/1.png", "val/a/1.png"})
    folder.write(name, png(5));
  DataConfig config;
  config.dataset = "image_folder";
  config.path = folder.path().string();
  config.holdout = 1;
  EXPECT_EQ(error_of<FileError>([&] { open_data(config, 0); }),
            fmt::format("{0}/val: lacks class folder b, which {0}/train has", config.path));
  folder.write("val/b/1.png", png(5));
  const DataSplits splits = open_data(config, 0);
  EXPECT_EQ(splits.preprocessing.channels, 3);
  EXPECT_EQ(splits.preprocessing.native_size, 32);
  EXPECT_EQ(splits.preprocessing.size, 32);
  config.image_size = 64;
  EXPECT_EQ(open_data(config, 0).preprocessing.size, 64);
  config.classes = 3;
  EXPECT_THAT(error_of<ValueError>([&] { open_data(config, 0); }), HasSubstr("has 2 class folders"));
}

TEST(FashionMnist, IsWholeAndNamed) {
  const auto test = open_fashion_mnist({}, "t10k");
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(test->image_size(), 28);
  EXPECT_EQ(test->classes(), 10);
  EXPECT_EQ(test->class_names()[0], "T-shirt/top");
  EXPECT_EQ(test->class_names()[9], "Ankle boot");
  std::vector<int> counts(10);
  for (std::int64_t i = 0; i < test->size(); ++i) ++counts[static_cast<std::size_t>(test->get(i).label)];
  EXPECT_THAT(counts, ::testing::Each(1000));
}

}  // namespace
}  // namespace gyre
