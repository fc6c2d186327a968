#include "layers/attention.h"
#include "layers/linear.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using testing::init_stream;
using testing::random;

TEST(ForwardObserver, SeesChildrenThenParentsWithTheirValues) {
  RandomStream stream = init_stream();
  Attention attention({}, 8, 2, stream);
  const Tensor x = random({1, 3, 8}, 1, DType::f32);
  std::vector<std::string> kinds;
  Tensor last;
  {
    const ForwardObserver observer([&](Module& module, const Variable& in, const Variable& out) {
      kinds.emplace_back(module.kind());
      EXPECT_EQ(in.size(1), 3);
      last = out.data();
    });
    const Variable y = attention(Variable(x));
    EXPECT_EQ(kinds, (std::vector<std::string>{"Linear", "Linear", "Attention"}));
    EXPECT_EQ(last.storage(), y.data().storage());
  }
  attention(Variable(x));
  EXPECT_EQ(kinds.size(), 3u) << "the scope has ended";
}

TEST(ForwardObserver, InnermostScopeCounts) {
  RandomStream stream = init_stream();
  Linear layer(4, 4, true, stream);
  const Variable x(random({2, 4}, 1, DType::f32));
  int outer = 0, inner = 0;
  const ForwardObserver first([&](Module&, const Variable&, const Variable&) { ++outer; });
  {
    const ForwardObserver second([&](Module&, const Variable&, const Variable&) { ++inner; });
    layer(x);
  }
  layer(x);
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(inner, 1);
}

}  // namespace
}  // namespace gyre
