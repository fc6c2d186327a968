#include "layers/module.h"

#include "autograd/ops/elementwise.h"
#include "layers/linear.h"
#include "tests/layers/testing.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::init_stream;

/// x + table, under the module's own name.
class Shift : public Module {
 public:
  Shift() : table_(&add_parameter("", Tensor::ones({1, 2}), false)) {
    add_parameter("cls", Tensor::zeros({2}));
  }
  Variable forward(const Variable& x) override { return x + table_->variable; }
  std::string_view kind() const override { return "Shift"; }

 private:
  Parameter* table_;
};

class Tree : public Module {
 public:
  Tree() {
    RandomStream stream = init_stream();
    first_ = &add<Linear>("first", 3, 2, true, stream);
    shift_ = &add("shift", std::make_unique<Shift>());
    second_ = &add<Linear>("inner.second", 2, 1, false, stream);
    scale_ = &add_parameter("scale", Tensor::ones({1}));
  }
  Variable forward(const Variable& x) override {
    return mul((*second_)((*shift_)((*first_)(x))), scale_->variable);
  }
  std::string_view kind() const override { return "Tree"; }
  void add_again(std::string name) { add<Shift>(std::move(name)); }
  void add_parameter_again(std::string name) { add_parameter(std::move(name), Tensor::ones({1})); }

 private:
  Module* first_;
  Module* shift_;
  Module* second_;
  Parameter* scale_;
};

std::vector<std::string> names_of(Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.parameters()) names.push_back(name);
  return names;
}

TEST(Module, NamesParametersDepthFirst) {
  Tree tree;
  EXPECT_THAT(names_of(tree), ElementsAre("scale", "first.weight", "first.bias", "shift", "shift.cls",
                                          "inner.second.weight"));
  std::vector<std::string> modules;
  for (const auto& [name, module] : tree.modules()) modules.push_back(name);
  EXPECT_THAT(modules, ElementsAre("", "first", "shift", "inner.second"));
  EXPECT_EQ(tree.parameter_count(), 1 + 6 + 2 + 2 + 2 + 2);
}

TEST(Module, DecaysMatricesOnly) {
  Tree tree;
  std::vector<std::string> decayed;
  for (const auto& [name, parameter] : tree.parameters())
    if (parameter->decay) decayed.push_back(name);
  EXPECT_THAT(decayed, ElementsAre("first.weight", "inner.second.weight"));
}

TEST(Module, TrainReachesEveryChild) {
  Tree tree;
  for (const auto& [name, module] : tree.modules()) EXPECT_TRUE(module->training()) << name;
  tree.eval();
  for (const auto& [name, module] : tree.modules()) EXPECT_FALSE(module->training()) << name;
  tree.train();
  for (const auto& [name, module] : tree.modules()) EXPECT_TRUE(module->training()) << name;
}

TEST(Module, RefusesNamesTwice) {
  Tree tree;
  EXPECT_THAT(error_of([&] { tree.add_again("shift"); }), HasSubstr("two children named \"shift\""));
  EXPECT_THAT(error_of([&] { tree.add_parameter_again("scale"); }),
              HasSubstr("two parameters named \"scale\""));
}

TEST(Module, ConvertsAndClearsGradients) {
  Tree tree;
  tree(Variable(testing::random({1, 3}, 0, DType::f32))).backward();
  for (const auto& [name, parameter] : tree.parameters())
    EXPECT_EQ(parameter->variable.grad().defined(), name != "shift.cls") << name;
  tree.to(DType::f64);
  for (const auto& [name, parameter] : tree.parameters()) {
    EXPECT_EQ(parameter->variable.dtype(), DType::f64) << name;
    EXPECT_FALSE(parameter->variable.grad().defined()) << name;
  }
  EXPECT_EQ(tree(Variable(testing::random({1, 3}))).dtype(), DType::f64);
}

TEST(Module, StateIsViewsAndLoadsBack) {
  Tree source, target;
  for (const auto& [name, parameter] : source.parameters()) {
    Tensor data = parameter->variable.data();
    data.fill_(7);
  }
  const TensorMap state = source.state();
  EXPECT_EQ(state.at("first.weight").storage(), source.parameters()[1].parameter->variable.data().storage());
  target.load_state(state);
  for (const auto& [name, tensor] : target.state()) {
    EXPECT_THAT(tensor.to_vector(), ::testing::Each(7)) << name;
    EXPECT_NE(tensor.storage(), state.at(name).storage()) << name;
  }
}

TEST(Module, LoadsOtherFloatingTypes) {
  Tree source, target;
  source.to(DType::f64);
  target.load_state(source.state());
  EXPECT_EQ(target.state().at("first.weight").dtype(), DType::f32);
  EXPECT_LT(testing::rel_l2(target.state().at("first.weight"), source.state().at("first.weight")), 1e-7);
}

TEST(Module, RefusedStateChangesNothing) {
  Tree tree;
  const auto snapshot = [&] {
    std::vector<double> all;
    for (const auto& [name, tensor] : tree.state())
      for (const double v : tensor.to_vector()) all.push_back(v);
    return all;
  };
  const std::vector<double> before = snapshot();
  TensorMap good;
  for (const auto& [name, tensor] : tree.state()) good[name] = Tensor::full(tensor.shape(), 5);

  TensorMap missing = good;
  missing.erase("shift.cls");
  EXPECT_THAT(error_of([&] { tree.load_state(missing); }), HasSubstr("lack the tensor shift.cls"));

  TensorMap unknown = good;
  unknown["head.weight"] = Tensor::ones({1});
  EXPECT_THAT(error_of([&] { tree.load_state(unknown); }), HasSubstr("head.weight, which the model lacks"));

  TensorMap misshapen = good;
  misshapen["inner.second.weight"] = Tensor::ones({2, 1});
  EXPECT_THAT(error_of([&] { tree.load_state(misshapen); }),
              HasSubstr("inner.second.weight with shape [2, 1], the model needs [1, 2]"));

  TensorMap integers = good;
  integers["scale"] = Tensor::ones({1}, DType::i64);
  EXPECT_THAT(error_of([&] { tree.load_state(integers); }), HasSubstr("scale of type i64"));

  EXPECT_EQ(snapshot(), before);
  tree.load_state(good);
  EXPECT_NE(snapshot(), before);
}

}  // namespace
}  // namespace gyre
