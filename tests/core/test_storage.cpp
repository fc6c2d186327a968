#include <gmock/gmock.h>

#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

namespace gyre {
namespace {

using testing::ThrowsMessage;

TEST(Storage, IsAlignedAndZeroBytesWork) {
  for (const std::size_t bytes : {1u, 63u, 65u, 4097u, 1000000u}) {
    const Storage storage(bytes, Device::cpu());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data()) % 64, 0u) << bytes;
    EXPECT_EQ(storage.bytes(), bytes);
  }
  Storage none(0, Device::cpu());
  none.mutable_data();
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(Storage, EveryMutableAccessRenewsTheVersion) {
  Storage storage(8, Device::cpu());
  const std::uint64_t first = storage.version();
  EXPECT_EQ(storage.data(), static_cast<const Storage&>(storage).data());
  EXPECT_EQ(storage.version(), first);
  storage.mutable_data();
  const std::uint64_t second = storage.version();
  EXPECT_NE(second, first);
  storage.mutable_data();
  EXPECT_NE(storage.version(), second);
}

TEST(Storage, VersionsNeverRepeatAcrossStoragesAndThreads) {
  // Reused memory must not look unchanged: a second storage at the same address has another version.
  std::uint64_t before = 0;
  {
    const Storage storage(256, Device::cpu());
    before = storage.version();
  }
  const Storage again(256, Device::cpu());
  EXPECT_NE(again.version(), before);

  constexpr std::size_t count = 2000;
  std::vector<std::vector<std::uint64_t>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.emplace_back([&mine] {
      for (std::size_t i = 0; i < count; ++i) mine.push_back(next_version());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> seen;
  for (const auto& mine : drawn) seen.insert(mine.begin(), mine.end());
  EXPECT_EQ(seen.size(), drawn.size() * count);
}

TEST(Storage, ForeignMemoryIsReadOnlyAndKeptAlive) {
  auto values = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const std::weak_ptr<std::vector<float>> watch = values;
  auto storage = std::make_shared<Storage>(values->data(), 3 * sizeof(float), values);
  values.reset();
  Tensor view = Tensor::view_of(storage, {3}, {1}, DType::f32);
  storage.reset();
  EXPECT_THAT(view.to_vector(), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(
      [&] { view.mutable_data<float>(); },
      ThrowsMessage<Error>("a read-only storage of 12 bytes cannot be written: clone the tensor first"));
  EXPECT_THROW(view.fill_(1), Error);
  Tensor copy = view.clone();
  copy.fill_(5);
  EXPECT_THAT(view.to_vector(), testing::ElementsAre(1, 2, 3));
  EXPECT_FALSE(watch.expired());
  view = {};
  EXPECT_TRUE(watch.expired());
}

TEST(Storage, AMissingDeviceIsRefusedWithItsReason) {
  const std::string reason = cuda_unavailable_reason();
  if (reason.empty()) GTEST_SKIP() << "a CUDA device answers here";
  EXPECT_THAT(
      [] {
        Tensor::empty({2, 3}, DType::f32, Device::cuda(1));
      },
      ThrowsMessage<DeviceError>("cuda:1 is not available: " + reason));
  EXPECT_THROW(Tensor::zeros({2}).to(Device::cuda()), DeviceError);
  EXPECT_THROW(memory_stats(Device::cuda()), DeviceError);
}

TEST(Storage, PinnedMemoryIsPlainMemoryToTheCpu) {
  Tensor x = Tensor::empty_pinned({3, 5}, DType::i64);
  EXPECT_TRUE(x.storage()->is_pinned());
  EXPECT_EQ(x.device(), Device::cpu());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.raw_data()) % 64, 0u);
  x.fill_(7);
  EXPECT_THAT(x.to_vector(), testing::Each(7));
  EXPECT_FALSE(x.clone().storage()->is_pinned());
  EXPECT_THROW(Tensor::empty_pinned({-1}), ShapeError);
}

}  // namespace
}  // namespace gyre
