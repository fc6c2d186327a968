#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace gyre {

namespace {
constexpr int window_bits = 15;
constexpr int gzip_format = 16;
constexpr std::size_t piece = std::numeric_limits<uInt>::max() / 2;  // zlib counts in 32 bits
}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

struct GzipReader::State {
  z_stream stream{};
  std::string_view rest;
  bool finished = false;
};

GzipReader::GzipReader(std::string_view bytes, std::string name)
    : state_(std::make_unique<State>()), name_(std::move(name)) {
  state_->rest = bytes;
  require<Error>(inflateInit2(&state_->stream, window_bits + gzip_format) == Z_OK, "{}: zlib does not start",
                 name_);
}

GzipReader::~GzipReader() { inflateEnd(&state_->stream); }

std::size_t GzipReader::read(void* out, std::size_t count) {
  z_stream& stream = state_->stream;
  std::string_view& rest = state_->rest;
  std::size_t total = 0;
  while (total < count && !state_->finished) {
    const std::size_t given = std::min(rest.size(), piece);
    const std::size_t wanted = std::min(count - total, piece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = static_cast<Bytef*>(out) + total;
    stream.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&stream, Z_NO_FLUSH);
    rest.remove_prefix(given - stream.avail_in);
    total += wanted - stream.avail_out;
    if (result == Z_STREAM_END) {
      if (rest.empty()) {
        state_->finished = true;
      } else {
        require<FileError>(is_gzip(rest), "{}: {} bytes that are not gzip follow the gzip data", name_,
                           rest.size());
        inflateReset(&stream);
      }
    } else if (result == Z_BUF_ERROR || (result == Z_OK && rest.empty() && stream.avail_out > 0)) {
      throw FileError(fmt::format("{}: gzip data end too early (is the file cut off?)", name_));
    } else if (result != Z_OK) {
      throw FileError(
          fmt::format("{}: corrupt gzip data ({})", name_, stream.msg ? stream.msg : "unknown reason"));
    }
  }
  return total;
}

}  // namespace gyre
