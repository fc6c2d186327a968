#include "data/device_loader.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/cuda/device.h"
#include "tests/data/support.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Device gpu = device_under_test();
const Preprocessing form{1, 28, 32, {0.3}, {0.4}};
const Pipeline augmenting(form, {4, true, true});

/// One sample cannot be read.
class Damaged : public test::RandomDataset {
 public:
  Damaged(std::int64_t size, std::int64_t bad) : RandomDataset(size), bad_(bad) {}
  Sample get(std::int64_t i) const override {
    require<FileError>(i != bad_, "image {} is damaged", i);
    return RandomDataset::get(i);
  }

 private:
  std::int64_t bad_;
};

template <class AnyLoader>
std::vector<Batch> rest(AnyLoader& loader) {
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

void expect_equal(const std::vector<Batch>& there, const std::vector<Batch>& here, std::size_t skipped = 0) {
  ASSERT_EQ(there.size() + skipped, here.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    const Batch& wanted = here[i + skipped];
    EXPECT_EQ(there[i].ids, wanted.ids);
    EXPECT_EQ(there[i].images.device(), gpu);
    EXPECT_EQ(there[i].labels.device(), gpu);
    EXPECT_EQ(there[i].labels.to_vector(), wanted.labels.to_vector());
    EXPECT_EQ(there[i].images.shape(), wanted.images.shape());
    EXPECT_EQ(there[i].images.to_vector(), wanted.images.to_vector());
  }
}

TEST(DeviceLoader, GivesTheBatchesOfTheLoader) {
  const auto data = std::make_shared<test::RandomDataset>(53);
  const Sampler sampler(53, 7, 11);
  Loader plain(data, augmenting, sampler, 11, 0);
  plain.start_epoch(2);
  const std::vector<Batch> wanted = rest(plain);
  ASSERT_EQ(wanted.size(), 8U);
  for (const int workers : {0, 1, 3}) {
    DeviceLoader loader(data, augmenting, sampler, 11, workers, 2, gpu);
    EXPECT_EQ(loader.sampler().batches(), 8);
    loader.start_epoch(2);
    expect_equal(rest(loader), wanted);
    EXPECT_FALSE(loader.next());
    loader.start_epoch(2, 5);
    expect_equal(rest(loader), wanted, 5);
    // What was prepared for the epoch before is given up.
    loader.start_epoch(1);
    loader.next();
    loader.start_epoch(2);
    expect_equal(rest(loader), wanted);
  }
  DeviceLoader here(data, augmenting, sampler, 11, 1, 2, Device::cpu());
  here.start_epoch(2);
  EXPECT_TRUE(here.next()->images.device().is_cpu());
}

TEST(DeviceLoader, TellsOfAnErrorWhenItsBatchIsDue) {
  for (const int workers : {0, 2}) {
    const auto data = std::make_shared<Damaged>(20, 13);
    DeviceLoader loader(data, Pipeline(form), Sampler(20, 5, 1, 0, 1, false), 1, workers, 4, gpu);
    loader.start_epoch(0);
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    for (int again = 0; again < 2; ++again)
      EXPECT_THAT([&] { loader.next(); }, ThrowsMessage<FileError>(HasSubstr("image 13 is damaged")));
    loader.start_epoch(0, 3);
    EXPECT_EQ(loader.next()->ids.front(), 15);
  }
}

}  // namespace
}  // namespace gyre
