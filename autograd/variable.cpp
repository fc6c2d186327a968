#include "autograd/variable.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "autograd/engine.h"

namespace gyre {
namespace {

thread_local bool recording = true;
std::atomic<std::uint64_t> next_sequence{1};

/// Makes one node of the results.
void record(const char* name, std::span<const Variable> results, std::span<const Variable> inputs,
            JointBackward backward) {
  const auto node = std::make_shared<Node>();
  node->name = name;
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  node->inputs.reserve(inputs.size());
  for (const Variable& input : inputs) node->inputs.push_back(input.state());
  node->backward = std::move(backward);
  node->incoming.resize(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    Variable::State& state = *results[i].state();
    state.requires_grad = true;
    state.node = node;
    state.output = i;
  }
}

}  // namespace

Variable::Variable(Tensor data, bool requires_grad) {
  require(data.defined(), "a variable needs a defined tensor");
  require<DTypeError>(!requires_grad || is_floating(data.dtype()), "{} data has no gradient", data.dtype());
  state_ = std::make_shared<State>(std::move(data), requires_grad);
}

const Tensor& Variable::data() const {
  require(defined(), "the data of an undefined variable was read");
  return state_->data;
}

void Variable::set_data(Tensor data) {
  require(defined(), "set_data on an undefined variable");
  require(is_leaf(), "set_data takes a leaf, not the result of {}", is_leaf() ? "" : state_->node->name);
  require_shape(data, shape(), "set_data");
  if (data.dtype() != state_->data.dtype() || data.device() != state_->data.device()) state_->grad = Tensor();
  state_->data = std::move(data);
}

bool Variable::requires_grad() const { return defined() && state_->requires_grad; }

void Variable::set_requires_grad(bool on) {
  require(defined(), "set_requires_grad on an undefined variable");
  require(is_leaf(), "set_requires_grad takes a leaf, not the result of {}",
          is_leaf() ? "" : state_->node->name);
  require<DTypeError>(!on || is_floating(dtype()), "{} data has no gradient", dtype());
  state_->requires_grad = on;
  if (!on) zero_grad();
}

bool Variable::is_leaf() const { return defined() && state_->node == nullptr; }

const Tensor& Variable::grad() const {
  require(defined(), "the gradient of an undefined variable was read");
  return state_->grad;
}

Tensor& Variable::mutable_grad() {
  require(defined(), "the gradient of an undefined variable was written");
  return state_->grad;
}

void Variable::zero_grad() {
  // Undefined, not zeros: the next backward then takes its first gradient over without a copy.
  if (defined()) state_->grad = Tensor();
}

void Variable::backward(const Tensor& grad) const {
  require(requires_grad(), "backward from a variable that requires no gradient");
  if (!grad.defined()) {
    require<ShapeError>(data().numel() == 1,
                        "backward from {} needs a gradient: only one element defaults to 1", shape());
    run_backward(state_, Tensor::ones(shape(), dtype(), device()));
    return;
  }
  require_shape(grad, shape(), "backward");
  require_same_dtype(grad, data(), "backward");
  require_same_device(grad, data(), "backward");
  run_backward(state_, grad);
}

Variable Variable::detach() const { return Variable(data()); }

NoGrad::NoGrad() : previous_(std::exchange(recording, false)) {}
NoGrad::~NoGrad() { recording = previous_; }

bool grad_enabled() { return recording; }

bool needs_grad(std::span<const Variable> inputs) {
  return recording && std::ranges::any_of(inputs, [](const Variable& v) { return v.requires_grad(); });
}

bool needs_grad(std::initializer_list<Variable> inputs) {
  return needs_grad(std::span<const Variable>(inputs.begin(), inputs.size()));
}

Variable make_result(const char* name, Tensor data, std::vector<Variable> inputs, BackwardFunction backward) {
  Variable result(std::move(data));
  if (!needs_grad(inputs)) return result;
  record(name, {&result, 1}, inputs,
         [backward = std::move(backward)](std::span<const Tensor> grads) { return backward(grads[0]); });
  return result;
}

std::vector<Variable> make_results(const char* name, std::vector<Tensor> data, std::vector<Variable> inputs,
                                   JointBackward backward) {
  std::vector<Variable> results;
  for (Tensor& x : data) results.emplace_back(std::move(x));
  if (needs_grad(inputs)) record(name, results, inputs, std::move(backward));
  return results;
}

SavedTensor::SavedTensor(Tensor tensor) : tensor_(std::move(tensor)) {
  if (tensor_.defined()) version_ = tensor_.version();
}

const Tensor& SavedTensor::unpack(const char* what) const {
  require(!tensor_.defined() || tensor_.version() == version_,
          "{}: a tensor saved for backward was changed in place", what);
  return tensor_;
}

}  // namespace gyre
