#include "models/verify.h"
#include "tests/train/run_support.h"

namespace gyre {
namespace {

/// Symmetry does not wear off: after 100 updates rounding is still all that a turn changes.
class TrainedVerify : public test::TrainerTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(TrainedVerify, PassesAfterAHundredUpdates) {
  Config trained = config();
  trained.model.group = GetParam();
  trained.model.heads = 1;
  trained.train.updates = 100;
  train(trained, "run");
  const Checkpoint checkpoint = last("run");
  EXPECT_EQ(checkpoint.state.updates, 100);
  for (const char* weights : {"raw", "ema"}) {
    const auto model = load_model(checkpoint, weights);
    const VerifyResult result = verify_model(*model);
    EXPECT_TRUE(result.pass()) << weights;
    for (const EquivarianceRow& row : result.equivariance)
      EXPECT_TRUE(row.scope == "outside" || row.nmae <= 1e-5) << row.scope << " " << row.element;
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, TrainedVerify, ::testing::Values("c2", "mirror", "c4", "d4"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace gyre
