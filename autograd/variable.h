#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace gyre {

class Variable;

/// Gradients for each input of a node, undefined where none is needed.
using Gradients = std::vector<Tensor>;
/// Maps the gradient of a node's output to those of its inputs; the incoming one may have any strides.
using BackwardFunction = std::function<Gradients(const Tensor& grad_output)>;
/// The same for a node of several outputs; undefined where an output reached nothing.
using JointBackward = std::function<Gradients(std::span<const Tensor> grad_outputs)>;

/// A tensor that remembers how it was computed. Copies share data, gradient and history.
class Variable {
 public:
  Variable() = default;
  /// A leaf; with `requires_grad` backward() accumulates into grad().
  explicit Variable(Tensor data, bool requires_grad = false);

  bool defined() const { return state_ != nullptr; }
  const Tensor& data() const;
  /// Exchanges the data of a leaf (EMA swap, checkpoint load); shape must agree.
  void set_data(Tensor data);
  const Shape& shape() const { return data().shape(); }
  std::int64_t size(int dim) const { return data().size(dim); }
  int rank() const { return data().rank(); }
  DType dtype() const { return data().dtype(); }
  Device device() const { return data().device(); }

  bool requires_grad() const;
  /// Of a leaf of floating type: whether later graphs reach it. Drops the gradient when turned off.
  void set_requires_grad(bool on);
  bool is_leaf() const;
  /// Accumulated gradient of a leaf; undefined before the first backward.
  const Tensor& grad() const;
  Tensor& mutable_grad();
  void zero_grad();

  /// Runs the graph backwards once and releases it. `grad` defaults to 1 for a single element.
  void backward(const Tensor& grad = {}) const;
  /// The same data without history.
  Variable detach() const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Turns gradient recording off on this thread while alive.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};
bool grad_enabled();

/// True if an operation on these inputs must record a node: decide before saving anything.
bool needs_grad(std::span<const Variable> inputs);
bool needs_grad(std::initializer_list<Variable> inputs);

/// Wraps an operation's result; records a node unless needs_grad(inputs) is false.
Variable make_result(const char* name, Tensor data, std::vector<Variable> inputs, BackwardFunction backward);
/// The same for an operation with several results, whose gradients come back together.
std::vector<Variable> make_results(const char* name, std::vector<Tensor> data, std::vector<Variable> inputs,
                                   JointBackward backward);

/// A tensor kept for backward; unpacking throws Error if its storage was written since.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor tensor);
  /// `what` names the operation in the error.
  const Tensor& unpack(const char* what) const;

 private:
  Tensor tensor_;
  std::uint64_t version_ = 0;
};

}  // namespace gyre
