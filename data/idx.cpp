#include "data/idx.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "data/gzip.h"

namespace gyre {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_unpacked_per_byte = 1032;  // of the deflate format

std::uint32_t big_endian(const unsigned char* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

/// The contents of a file, unpacked if it is gzip.
class Source {
 public:
  explicit Source(const fs::path& path) : name_(path.string()), bytes_(read_file(path)) {
    if (is_gzip(bytes_)) gzip_.emplace(bytes_, name_);
  }

  std::size_t read(void* out, std::size_t count) {
    if (gzip_) return gzip_->read(out, count);
    count = std::min(count, bytes_.size() - offset_);
    std::memcpy(out, bytes_.data() + offset_, count);
    offset_ += count;
    return count;
  }

  /// Unpacked size, where the cheap signs contradict `expected` by unpacking everything once.
  std::uint64_t size(std::uint64_t expected) const {
    if (!gzip_) return bytes_.size();
    if (expected / most_unpacked_per_byte <= bytes_.size() && bytes_.size() > 4) {
      std::array<unsigned char, 4> trailer;
      std::reverse_copy(bytes_.end() - 4, bytes_.end(), trailer.begin());
      if (big_endian(trailer.data()) == static_cast<std::uint32_t>(expected)) return expected;
    }
    GzipReader reader(bytes_, name_);
    std::vector<char> scratch(1 << 16);
    std::uint64_t total = 0;
    while (const std::size_t count = reader.read(scratch.data(), scratch.size())) total += count;
    return total;
  }

 private:
  std::string name_;
  std::string bytes_;
  std::size_t offset_ = 0;
  std::optional<GzipReader> gzip_;
};

std::string_view contents_of(int rank) { return rank == 3 ? "images" : "labels"; }

void check_magic(const fs::path& path, const unsigned char* magic, int rank) {
  const std::uint32_t value = big_endian(magic);
  require<FileError>(value >> 16 == 0, "{}: magic number 0x{:08x}: not an IDX file", path.string(), value);
  require<FileError>(magic[2] == 0x08,
                     "{}: magic number 0x{:08x}: element type 0x{:02x} instead of 0x08, unsigned bytes",
                     path.string(), value, magic[2]);
  const int found = magic[3];
  if (found == rank) return;
  if (found == 1 || found == 3)
    throw FileError(fmt::format("{}: magic number 0x{:08x}: a file of {} where {} are expected",
                                path.string(), value, contents_of(found), contents_of(rank)));
  throw FileError(fmt::format("{}: magic number 0x{:08x}: {} dimensions where {} have {}", path.string(),
                              value, found, contents_of(rank), rank));
}

Tensor read_idx(const fs::path& path, int rank) {
  Source source(path);
  std::array<unsigned char, 16> header{};
  const std::size_t header_size = 4 + 4 * static_cast<std::size_t>(rank);
  const std::size_t found = source.read(header.data(), header_size);
  require<FileError>(found >= 4, "{}: {} bytes, too short for an IDX file", path.string(), found);
  check_magic(path, header.data(), rank);
  require<FileError>(found == header_size, "{}: truncated in its header: expected {} bytes, found {}",
                     path.string(), header_size, found);

  Shape shape;
  std::string extents;
  std::uint64_t expected = 1;
  bool fits = true;
  for (int d = 0; d < rank; ++d) {
    const std::uint32_t extent = big_endian(header.data() + 4 + 4 * d);
    shape.push_back(extent);
    extents += fmt::format("{}{}", d ? " x " : "", extent);
    fits = fits && !__builtin_mul_overflow(expected, std::uint64_t{extent}, &expected);
  }
  require<FileError>(fits && expected < std::numeric_limits<std::int64_t>::max() / 2,
                     "{}: impossible size {}", path.string(), extents);
  require<FileError>(expected > 0, "{}: holds no {} ({})", path.string(), contents_of(rank), extents);
  expected += header_size;
  const std::uint64_t size = source.size(expected);
  require<FileError>(size == expected, "{}: {}: expected {} bytes for {} {}, found {}", path.string(),
                     size < expected ? "truncated" : "overlong", expected, extents, contents_of(rank), size);

  Tensor values = Tensor::empty(shape, DType::u8);
  const std::size_t count = source.read(values.mutable_data<std::uint8_t>(), expected - header_size);
  char more;
  // The second read also makes zlib compare the checksum.
  const bool whole = count == expected - header_size && source.read(&more, 1) == 0;
  require<FileError>(whole, "{}: contents do not match the size that gzip states", path.string());
  return values;
}

}  // namespace

Tensor read_idx_images(const fs::path& path) { return read_idx(path, 3); }
Tensor read_idx_labels(const fs::path& path) { return read_idx(path, 1); }

fs::path find_idx_file(const fs::path& folder, std::string_view stem, int rank) {
  require_data_folder(folder);
  std::error_code ignored;
  std::string tried;
  for (const char separator : {'-', '.'}) {
    for (const char* suffix : {"", ".gz"}) {
      const std::string name = fmt::format("{}{}idx{}-ubyte{}", stem, separator, rank, suffix);
      if (fs::exists(folder / name, ignored)) return folder / name;
      tried += (tried.empty() ? "" : ", ") + name;
    }
  }
  throw FileError(fmt::format("{}: no file {} (tried {})", folder.string(), stem, tried));
}

IdxDataset::IdxDataset(const fs::path& folder, std::string_view split, std::string name, int classes,
                       std::vector<std::string> class_names)
    : name_(std::move(name)), class_names_(std::move(class_names)) {
  const fs::path image_path = find_idx_file(folder, std::string(split) + "-images", 3);
  const fs::path label_path = find_idx_file(folder, std::string(split) + "-labels", 1);
  images_ = read_idx_images(image_path);
  labels_ = read_idx_labels(label_path);
  require<FileError>(images_.size(0) == labels_.size(0), "{}: {} images, but {} labels in {}",
                     image_path.string(), images_.size(0), labels_.size(0), label_path.string());

  const std::uint8_t* labels = labels_.data<std::uint8_t>();
  if (classes == 0) classes = static_cast<int>(class_names_.size());
  if (classes == 0) classes = *std::max_element(labels, labels + labels_.numel()) + 1;
  for (std::int64_t i = 0; i < labels_.numel(); ++i)
    require<FileError>(labels[i] < classes, "{}: label {} at index {}; allowed are 0 to {}",
                       label_path.string(), labels[i], i, classes - 1);
  const std::size_t named = class_names_.size();
  class_names_.resize(static_cast<std::size_t>(classes));
  for (std::size_t i = named; i < class_names_.size(); ++i) class_names_[i] = fmt::format("{}", i);
}

Sample IdxDataset::get(std::int64_t i) const {
  const std::int64_t own = label(i);
  return {images_.slice(0, i, i + 1), own};
}

std::int64_t IdxDataset::label(std::int64_t i) const {
  require<ValueError>(i >= 0 && i < size(), "{}: sample {} of {}", name_, i, size());
  return labels_.data<std::uint8_t>()[i];
}

int IdxDataset::image_size() const {
  return images_.size(1) == images_.size(2) ? static_cast<int>(images_.size(1)) : 0;
}

}  // namespace gyre
