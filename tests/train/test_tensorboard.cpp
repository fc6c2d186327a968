#include "train/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "core/file.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

/// CRC-32C bit by bit, masked as in TFRecord.
std::uint32_t masked(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = ((crc ^ (static_cast<unsigned char>(byte) >> bit)) & 1) != 0;
      crc = (crc >> 1) ^ (one ? 0x82F63B78u : 0);
    }
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <class T>
T fixed(std::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.substr(0, sizeof(T)).data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

/// The fields of a protobuf message: number → raw payloads (fixed ones as their bytes, varints as 8 bytes).
std::multimap<std::uint64_t, std::string> fields(std::string_view bytes) {
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>(bytes);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  std::multimap<std::uint64_t, std::string> all;
  while (!bytes.empty()) {
    const std::uint64_t key = varint();
    std::string payload;
    if ((key & 7) == 0) {
      const std::uint64_t value = varint();
      payload.assign(reinterpret_cast<const char*>(&value), 8);
    } else {
      const std::size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
      payload = bytes.substr(0, size);
      EXPECT_EQ(payload.size(), size);
      bytes.remove_prefix(payload.size());
    }
    all.emplace(key >> 3, payload);
  }
  return all;
}

template <class T>
T as(const std::string& payload) {
  T value{};
  EXPECT_EQ(payload.size(), sizeof(T));
  std::memcpy(&value, payload.data(), sizeof(T));
  return value;
}

struct Event {
  double time = 0;
  std::int64_t step = 0;
  std::string version;
  bool session_start = false;
  std::vector<std::pair<std::string, float>> scalars;
};

std::vector<Event> read_events(const fs::path& path) {
  const std::string file = read_file(path);
  std::string_view rest = file;
  std::vector<Event> events;
  while (!rest.empty()) {
    const std::string_view head = rest.substr(0, 8);
    const auto length = fixed<std::uint64_t>(rest);
    EXPECT_EQ(fixed<std::uint32_t>(rest), masked(head));
    const std::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    EXPECT_EQ(fixed<std::uint32_t>(rest), masked(data));
    Event event;
    for (const auto& [number, payload] : fields(data)) {
      if (number == 1) event.time = as<double>(payload);
      if (number == 2) event.step = as<std::int64_t>(payload);
      if (number == 3) event.version = payload;
      if (number == 7) event.session_start = as<std::int64_t>(fields(payload).find(1)->second) == 1;
      if (number != 5) continue;
      for (const auto& [one, value] : fields(payload)) {
        EXPECT_EQ(one, 1u);
        const auto parts = fields(value);
        event.scalars.emplace_back(parts.find(1)->second, as<float>(parts.find(2)->second));
      }
    }
    events.push_back(event);
  }
  return events;
}

TEST(TensorBoard, Crc32cMatchesPublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(TensorBoard, WritesEventsThatReadBack) {
  const test::TempFolder folder;
  TensorBoardWriter writer(folder.path());
  const std::string long_name(300, 'x');
  const std::int64_t large = (std::int64_t{1} << 40) + 5;
  writer.scalars(1, {{"step/loss", 0.1}, {"step/lr", 1e-3}});
  writer.scalars(300, {{long_name, -2.5}, {"step/loss", std::nan("")}});
  writer.scalars(large, {{"step/loss", 1e300}});
  writer.scalars(5, {});  // no event
  writer.sync();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_FALSE(events[0].session_start);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (const Event& event : events) EXPECT_NEAR(event.time, now, 60);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[1].scalars,
            (std::vector<std::pair<std::string, float>>{{"step/loss", 0.1f}, {"step/lr", 1e-3f}}));
  EXPECT_EQ(events[2].step, 300);
  EXPECT_EQ(events[2].scalars[0], std::pair(long_name, -2.5f));
  EXPECT_TRUE(std::isnan(events[2].scalars[1].second));
  EXPECT_EQ(events[3].step, large);
  EXPECT_TRUE(std::isinf(events[3].scalars[0].second));
}

TEST(TensorBoard, AResumedRunAddsAFileThatSortsBehind) {
  const test::TempFolder folder;
  const fs::path future = folder.write("events.out.tfevents.9999999998.0000.gyre", "kept");
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < 4; ++i) {
    TensorBoardWriter writer(folder.path(), i == 0 ? 0 : 10 * i + 1);
    writer.scalars(10 * i + 1, {{"x", 1}});
    names.push_back(writer.path().filename().string());
    const auto events = read_events(writer.path());
    ASSERT_EQ(events.size(), i == 0 ? 2u : 3u);
    if (i == 0) continue;
    EXPECT_TRUE(events[1].session_start);
    EXPECT_EQ(events[1].step, 10 * i + 1);
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_GT(names[0], future.filename().string());
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 4u);
  EXPECT_EQ(read_file(future), "kept");
}

}  // namespace
}  // namespace gyre
