#include "train/tensorboard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <system_error>

#include "core/error.h"

namespace gyre {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view file_prefix = "events.out.tfevents.";

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}

/// Rotated and shifted: TFRecord files may hold CRCs of data that holds CRCs.
std::uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

template <class T>
void put_fixed(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

// Protobuf fields: the key is (number << 3) | wire type.
void put_int(std::string& out, unsigned number, std::int64_t value) {
  put_varint(out, number << 3 | 0);
  put_varint(out, static_cast<std::uint64_t>(value));
}
void put_double(std::string& out, unsigned number, double value) {
  put_varint(out, number << 3 | 1);
  put_fixed(out, std::bit_cast<std::uint64_t>(value));
}
void put_float(std::string& out, unsigned number, float value) {
  put_varint(out, number << 3 | 5);
  put_fixed(out, std::bit_cast<std::uint32_t>(value));
}
void put_bytes(std::string& out, unsigned number, std::string_view bytes) {
  put_varint(out, number << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
enum Event : unsigned { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
enum Summary : unsigned { value = 1 };
enum SummaryValue : unsigned { tag = 1, simple_value = 2 };
enum SessionLog : unsigned { status = 1 };
constexpr std::int64_t session_start = 1;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_at(std::int64_t update) {
  std::string event;
  put_double(event, wall_time, seconds_now());
  if (update != 0) put_int(event, step, update);
  return event;
}

/// TensorBoard reads files in order of their names: a later one sorts behind, also after a clock set back.
fs::path next_file(const fs::path& folder) {
  auto seconds = static_cast<std::int64_t>(seconds_now());
  std::size_t count = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(file_prefix)) continue;
    ++count;
    std::int64_t earlier = 0;
    std::from_chars(name.data() + file_prefix.size(), name.data() + name.size(), earlier);
    seconds = std::max(seconds, earlier);
  }
  const auto path = [&] { return folder / fmt::format("{}{:010}.{:04}.gyre", file_prefix, seconds, count); };
  while (fs::exists(path(), missing)) ++count;
  return path();
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = make_table();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string tf_record(std::string_view data) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(data.size()));
  put_fixed(record, masked_crc32c(record));
  record += data;
  put_fixed(record, masked_crc32c(data));
  return record;
}

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, std::int64_t next_update)
    : file_(next_file(folder), /*fresh=*/true) {
  std::string version = event_at(0);
  put_bytes(version, file_version, "brain.Event:2");
  std::string records = tf_record(version);
  if (next_update > 0) {
    std::string log, start = event_at(next_update);
    put_int(log, status, session_start);
    put_bytes(start, session_log, log);
    records += tf_record(start);
  }
  file_.append(records);
}

void TensorBoardWriter::scalars(std::int64_t update,
                                const std::vector<std::pair<std::string, double>>& values) {
  if (values.empty()) return;
  std::string all;
  for (const auto& [name, number] : values) {
    std::string one;
    put_bytes(one, tag, name);
    put_float(one, simple_value, static_cast<float>(number));
    put_bytes(all, value, one);
  }
  std::string event = event_at(update);
  put_bytes(event, summary, all);
  file_.append(tf_record(event));
}

}  // namespace gyre
