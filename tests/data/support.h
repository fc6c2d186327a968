#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/random.h"
#include "core/tensor.h"
#include "data/dataset.h"

namespace gyre::test {

/// A folder that lives as long as the object.
class TempFolder {
 public:
  TempFolder() {
    static std::atomic<int> count = 0;
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("gyre_{}_{}_{}_{}", info->test_suite_name(), info->name(), ::getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file, with the folders above it, and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, bytes);
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// The text of the E that `f` throws; a test failure if it throws none.
template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline std::string big_endian(std::uint32_t value) {
  std::string text;
  for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(value >> shift & 255);
  return text;
}

/// An IDX file of unsigned bytes.
inline std::string idx_bytes(const std::vector<std::uint32_t>& extents, std::string_view payload) {
  std::string bytes = big_endian(0x00000800U + static_cast<std::uint32_t>(extents.size()));
  for (const std::uint32_t extent : extents) bytes += big_endian(extent);
  return bytes.append(payload);
}

inline std::string gzip_bytes(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string random_bytes(std::size_t count, std::uint64_t seed) {
  RandomStream stream(seed, Purpose::test);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(stream.below(256));
  return bytes;
}

inline Tensor random_image(std::int64_t channels, std::int64_t height, std::int64_t width,
                           std::uint64_t seed) {
  const std::string bytes = random_bytes(static_cast<std::size_t>(channels * height * width), seed);
  return Tensor::from(std::vector<std::uint8_t>(bytes.begin(), bytes.end()), {channels, height, width});
}

/// Random grey images in memory; label = index mod 10.
class RandomDataset : public Dataset {
 public:
  explicit RandomDataset(std::int64_t size, std::int64_t side = 28) {
    for (std::int64_t i = 0; i < size; ++i)
      images_.push_back(random_image(1, side, side, static_cast<std::uint64_t>(i)));
    for (int i = 0; i < 10; ++i) names_.push_back(fmt::format("class {}", i));
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }
  Sample get(std::int64_t i) const override { return {images_[static_cast<std::size_t>(i)], i % 10}; }
  int channels() const override { return 1; }
  int image_size() const override { return static_cast<int>(images_[0].size(1)); }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string name() const override { return "random"; }

 private:
  std::vector<Tensor> images_;
  std::vector<std::string> names_;
};

}  // namespace gyre::test
