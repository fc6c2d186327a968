#include "core/cuda/runtime.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/upload.h"
#include "core/profile.h"
#include "core/tensor.h"

namespace gyre::cuda {
namespace {

using testing::ContainsRegex;
using testing::Each;
using testing::ThrowsMessage;

const Device gpu = Device::cuda();

class CudaMemory : public testing::Test {
 protected:
  void SetUp() override { gyre::release_cached_memory(gpu); }
  static MemoryStats stats() { return gyre::memory_stats(gpu); }
};

TEST_F(CudaMemory, CountsWhatTensorsHold) {
  const std::size_t host = gyre::memory_stats().active;
  const MemoryStats before = stats();
  gyre::reset_peak_memory(gpu);
  EXPECT_EQ(stats().peak, before.active);
  {
    const Tensor x = Tensor::empty({1 << 20}, DType::f32, gpu);
    EXPECT_EQ(stats().active, before.active + (4U << 20));
    const Tensor view = x.slice(0, 0, 5);
    EXPECT_EQ(stats().active, before.active + (4U << 20));
  }
  EXPECT_EQ(stats().active, before.active);
  EXPECT_EQ(stats().peak, before.active + (4U << 20));
  cuda::synchronize(0);
  EXPECT_GE(stats().cached, 4U << 20);
  const std::size_t cached = stats().cached;
  gyre::release_cached_memory(gpu);
  EXPECT_LE(stats().cached, cached);  // a driver returns whole pages that nobody uses
  if (emulated()) {
    EXPECT_EQ(stats().cached, 0U);
  }
  EXPECT_EQ(gyre::memory_stats().active, host);
}

TEST_F(CudaMemory, SteadyUseAllocatesNothing) {
  const auto step = [] {
    Tensor x = Tensor::zeros({64, 1000}, DType::f32, gpu);
    for (int i = 0; i < 5; ++i) x = x.transpose(0, 1).contiguous();
    cuda::synchronize(0);
  };
  step();
  const std::size_t warm = stats().allocations;
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(stats().allocations, warm);
}

TEST_F(CudaMemory, FailureNamesWhatIsThere) {
  const std::size_t active = stats().active;
  EXPECT_THAT(
      [] { Tensor::empty({std::int64_t{1} << 50}, DType::u8, gpu); },
      ThrowsMessage<DeviceError>(ContainsRegex("cannot allocate 1125899906842624 bytes on cuda:0: [0-9]+ "
                                               "bytes in use, [0-9]+ of [0-9]+ bytes free")));
  EXPECT_EQ(stats().active, active);
  EXPECT_THAT(Tensor::zeros({3}, DType::f32, gpu).to_vector(), Each(0));  // nothing lingers
}

TEST_F(CudaMemory, PinnedMemoryIsReused) {
  const void* first = Tensor::empty_pinned({1000}).raw_data();
  EXPECT_EQ(Tensor::empty_pinned({1000}).raw_data(), first);
}

TEST(CudaRuntime, TellsItsDevices) {
  ASSERT_GE(device_count(), 1);
  const DeviceInfo info = device_info(0);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.capability, 80);
  EXPECT_GT(info.memory, std::size_t{1} << 30);
  EXPECT_EQ(unavailable_reason(0), "");
  EXPECT_THAT(unavailable_reason(99), ContainsRegex("[0-9]+ CUDA devices? present"));
  EXPECT_THROW(compute_stream(-1), DeviceError);
}

TEST(CudaRuntime, FailedCallsNameFileAndLine) {
  EXPECT_THROW(throw_failed_call("cudaThing(x)", "thing.cpp", 12, "no room", true), OutOfMemoryError);
  EXPECT_THAT([] { throw_failed_call("cudaThing(x)", "/a/b/thing.cpp", 12, "no luck"); },
              ThrowsMessage<DeviceError>("thing.cpp:12: cudaThing(x) failed: no luck"));
}

TEST(CudaRuntime, EventsOrderStreams) {
  std::vector<float> values(1 << 16, 3), back(1 << 16, 0);
  const std::size_t bytes = values.size() * sizeof(float);
  void *const compute = compute_stream(0), *const copies = copy_stream(0);
  Event start(0, true), written(0), end(0, true);
  void* data = allocate(bytes, 0, copies);
  start.record(copies);
  copy_async(data, values.data(), bytes, copies);
  written.record(copies);
  end.record(copies);
  written.hold(compute);
  copy_async(back.data(), data, bytes, compute);
  synchronize(compute);
  deallocate(data, bytes, 0);
  EXPECT_EQ(back, values);
  end.synchronize();
  EXPECT_TRUE(written.done() && end.done());
  EXPECT_GE(end.since(start), 0);
  Event moved = std::move(written);
  EXPECT_TRUE(moved.done());
}

TEST(CudaRuntime, ThreadsShareADevice) {
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (std::size_t id = 0; id < sums.size(); ++id) {
    threads.emplace_back([id, &sums] {
      for (int round = 0; round < 20; ++round) {
        Tensor x = Tensor::empty({40 + static_cast<std::int64_t>(id)}, DType::f64, gpu);
        if (!emulated())
          x.fill_(static_cast<double>(id));  // the emulator runs one kernel at a time
        else
          x.copy_(Tensor::full(x.shape(), static_cast<double>(id), DType::f64).to(gpu));
        for (const double value : x.to_vector()) sums[id] += value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t id = 0; id < sums.size(); ++id)
    EXPECT_EQ(sums[id], static_cast<double>(20 * (40 + id) * id));
}

TEST(CudaUpload, BringsBatchesBesideCompute) {
  for (const bool pinned : {true, false}) {
    Tensor x = Tensor::zeros({64, 100}, DType::f32, gpu);
    for (int batch = 0; batch < 10; ++batch) {
      Tensor host = pinned ? Tensor::empty_pinned({100, 64}, DType::f32) : Tensor::empty({100, 64});
      host.fill_(batch);
      const Tensor there = upload(host, gpu);
      host = {};  // the copy keeps what it reads
      x.copy_(there.transpose(0, 1));
      EXPECT_EQ(x.at({63, 99}), batch);
    }
  }
  const Tensor turned = upload(Tensor::arange(6).reshape({2, 3}).transpose(0, 1), gpu);
  EXPECT_THAT(turned.to_vector(), testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(upload(Tensor::zeros({0, 3}), gpu).shape(), Shape({0, 3}));
  EXPECT_TRUE(upload(Tensor::zeros({2}), Device::cpu()).device().is_cpu());
  EXPECT_THAT([&] { upload(turned, gpu); },
              ThrowsMessage<DeviceError>("upload takes a tensor on the CPU, not i64[3, 2] cuda:0"));
}

TEST(CudaUpload, IsTakenOnceAndMayBeGivenUp) {
  const Tensor host = Tensor::empty_pinned({1000}, DType::f32);
  Tensor values = host;
  values.fill_(3);
  const std::size_t before = memory_stats(0).active;
  {
    Upload upload(host, gpu), moved = std::move(upload);
    const Tensor there = moved.take();
    EXPECT_EQ(there.to_vector(), std::vector<double>(1000, 3.0));
    EXPECT_THAT([&] { moved.take(); }, ThrowsMessage<Error>("an upload is taken once"));
    const Upload given_up(host, gpu);
  }
  EXPECT_EQ(memory_stats(0).active, before);
}

TEST(CudaProfile, TimesWhatTheDeviceDoes) {
  const Profile profile(gpu);
  const Tensor x = Tensor::ones({256, 256}, DType::f32, gpu);
  const Tensor y = x.to(DType::f64);
  ASSERT_EQ(profile.entries().size(), 2U);
  for (const Profile::Entry& entry : profile.entries()) EXPECT_GT(entry.seconds, 0) << entry.name;
}

TEST(CudaDevices, TensorsMoveBetweenThem) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  const Tensor x = Tensor::arange(12).reshape({3, 4}).to(gpu);
  const Tensor y = x.transpose(0, 1).to(Device::cuda(1));
  EXPECT_EQ(y.device(), Device::cuda(1));
  EXPECT_EQ(y.clone().to_vector(), x.transpose(0, 1).to_vector());
  EXPECT_THROW(y.clone().copy_(x.transpose(0, 1)), DeviceError);
}

}  // namespace
}  // namespace gyre::cuda
