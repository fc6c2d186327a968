#include "layers/module.h"

#include <set>

namespace gyre {

namespace {

std::string join(const std::string& prefix, const std::string& name) {
  if (prefix.empty() || name.empty()) return prefix + name;
  return prefix + "." + name;
}

thread_local ForwardObserver* current_observer = nullptr;

}  // namespace

ForwardObserver::ForwardObserver(Callback callback)
    : callback_(std::move(callback)), outer_(current_observer) {
  current_observer = this;
}

ForwardObserver::~ForwardObserver() { current_observer = outer_; }

Variable Module::operator()(const Variable& x) {
  Variable y = forward(x);
  observe(x, y);
  return y;
}

void Module::observe(const Variable& x, const Variable& y) {
  if (const ForwardObserver* observer = current_observer) observer->callback_(*this, x, y);
}

std::vector<Module::NamedParameter> Module::parameters() {
  std::vector<NamedParameter> all;
  for (auto& [prefix, module] : modules()) {
    for (auto& [name, parameter] : module->parameters_) all.push_back({join(prefix, name), parameter.get()});
  }
  return all;
}

std::vector<Module::NamedModule> Module::modules() {
  std::vector<NamedModule> all{{"", this}};
  for (auto& [name, child] : children_) {
    for (auto& [below, module] : child->modules()) all.push_back({join(name, below), module});
  }
  return all;
}

std::int64_t Module::parameter_count() {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : parameters()) count += parameter->variable.data().numel();
  return count;
}

void Module::train(bool on) {
  training_ = on;
  for (auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad() {
  for (const auto& [name, parameter] : parameters()) parameter->variable.zero_grad();
}

void Module::to(DType dtype) {
  for (const auto& [name, parameter] : parameters()) {
    parameter->variable.zero_grad();
    parameter->variable.set_data(parameter->variable.data().to(dtype));
  }
}

void Module::to(Device device) {
  for (const auto& [name, parameter] : parameters()) {
    parameter->variable.zero_grad();
    parameter->variable.set_data(parameter->variable.data().to(device));
  }
  for (const auto& [name, module] : modules())
    for (Tensor* constant : module->constants_)
      if (constant->defined()) *constant = constant->to(device);
}

TensorMap Module::state() {
  TensorMap state;
  for (const auto& [name, parameter] : parameters()) state.emplace(name, parameter->variable.data());
  return state;
}

void Module::load_state(const TensorMap& state) {
  std::set<std::string> known;
  for (const auto& [name, parameter] : parameters()) {
    known.insert(name);
    const auto found = state.find(name);
    require(found != state.end(), "weights lack the tensor {}", name);
    const Shape& given = found->second.shape();
    const Shape& own = parameter->variable.shape();
    require(given == own, "weights have {} with shape {}, the model needs {}", name, given.str(), own.str());
    require(is_floating(found->second.dtype()), "weights have {} of type {}, which is not a floating type",
            name, found->second.dtype());
  }
  for (const auto& [name, tensor] : state)
    require(known.contains(name), "weights have the tensor {}, which the model lacks", name);

  for (const auto& [name, parameter] : parameters()) {
    Tensor data = parameter->variable.data();  // shares the storage
    data.copy_(state.at(name).to(data.device()));
  }
}

Parameter& Module::add_parameter(std::string name, Tensor data, bool decay) {
  for (const auto& [taken, parameter] : parameters_)
    require(taken != name, "{} has two parameters named \"{}\"", kind(), name);
  const bool matrix = data.rank() > 1;
  auto parameter = std::make_unique<Parameter>(
      Parameter{Variable(std::move(data), /*requires_grad=*/true), decay && matrix});
  Parameter& reference = *parameter;
  parameters_.emplace_back(std::move(name), std::move(parameter));
  return reference;
}

void Module::add_child(std::string name, std::unique_ptr<Module> child) {
  for (const auto& [taken, other] : children_)
    require(taken != name, "{} has two children named \"{}\"", kind(), name);
  children_.emplace_back(std::move(name), std::move(child));
}

}  // namespace gyre
