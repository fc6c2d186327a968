#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace gyre {

/// How a variable was computed, or several together. Closures hold tensors, never variables: the graph is
/// owned through `inputs` alone.
struct Node {
  const char* name;
  std::uint64_t sequence;  ///< grows with every node of the process; inputs come before outputs
  std::vector<std::shared_ptr<Variable::State>> inputs;
  JointBackward backward;
  /// Per output, the sum of the gradients that have arrived in the running backward.
  std::vector<Tensor> incoming;
  bool released = false;  ///< ran already; inputs and closure are gone
};

struct Variable::State {
  Tensor data;
  Tensor grad;
  bool requires_grad = false;
  std::shared_ptr<Node> node;  ///< null for a leaf
  std::size_t output = 0;      ///< which of the node's

  State(Tensor tensor, bool needs_gradient) : data(std::move(tensor)), requires_grad(needs_gradient) {}
  /// Releases the graph behind without recursion.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

/// Sends `grad` back from `root` in decreasing sequence and adds to the grad of every leaf reached. Every
/// node is released as soon as it ran; meeting a released one throws Error. One backward at a time per graph.
void run_backward(const std::shared_ptr<Variable::State>& root, Tensor grad);

}  // namespace gyre
