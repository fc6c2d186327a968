#include "autograd/engine.h"

#include <algorithm>
#include <utility>

#include "kernels/elementwise.h"

namespace gyre {
namespace {

using StatePtr = std::shared_ptr<Variable::State>;
using NodePtr = std::shared_ptr<Node>;

/// Whether a gradient waits at one of the node's outputs.
bool waits(const Node& node) { return std::ranges::any_of(node.incoming, &Tensor::defined); }

/// Nothing else sees these elements, so that they may be written.
bool exclusive(const Tensor& tensor) { return tensor.storage().use_count() == 1 && tensor.is_contiguous(); }

/// sum += grad, in place where one of both allows it.
void accumulate(Tensor& sum, Tensor&& grad) {
  if (!sum.defined()) {
    sum = std::move(grad);
  } else if (exclusive(sum)) {
    kernels::add_into(sum, grad);
  } else if (exclusive(grad)) {
    kernels::add_into(grad, sum);
    sum = std::move(grad);
  } else {
    sum = kernels::binary(kernels::BinaryOp::add, sum, grad);
  }
}

void accumulate_leaf(Tensor& sum, Tensor&& grad) {
  if (sum.defined()) {
    kernels::add_into(sum, grad);
    return;
  }
  // A slice of something larger would keep all of it alive.
  const bool whole =
      static_cast<std::size_t>(grad.numel()) * size_of(grad.dtype()) == grad.storage()->bytes();
  sum = whole && exclusive(grad) ? std::move(grad) : grad.clone();
}

/// Nodes at which a gradient waits, latest first.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  /// After an error nothing stays behind in the graph.
  ~Queue() {
    for (const NodePtr& node : heap_) std::ranges::fill(node->incoming, Tensor());
  }

  void deliver(const StatePtr& state, Tensor&& grad) {
    if (!state->node) {
      accumulate_leaf(state->grad, std::move(grad));
      return;
    }
    Node& node = *state->node;
    require(!node.released, "backward a second time through {}: its graph was released", node.name);
    const bool first = !waits(node);
    accumulate(node.incoming[state->output], std::move(grad));
    if (!first) return;
    heap_.push_back(state->node);
    std::ranges::push_heap(heap_, earlier);
  }
  bool empty() const { return heap_.empty(); }
  NodePtr pop() {
    std::ranges::pop_heap(heap_, earlier);
    NodePtr node = std::move(heap_.back());
    heap_.pop_back();
    return node;
  }

 private:
  static bool earlier(const NodePtr& a, const NodePtr& b) { return a->sequence < b->sequence; }

  std::vector<NodePtr> heap_;
};

/// The gradients of the node's inputs; the closure and the incoming gradients are gone afterwards.
Gradients run(Node& node) {
  const std::vector<Tensor> incoming = std::exchange(node.incoming, {});
  const JointBackward backward = std::exchange(node.backward, nullptr);
  node.released = true;
  return backward(incoming);
}

void check(const Node& node, std::size_t i, const Variable::State& input, const Tensor& grad) {
  require<ShapeError>(grad.shape() == input.data.shape(),
                      "{}: gradient {} has shape {}, its input {} (internal error)", node.name, i,
                      grad.shape(), input.data.shape());
  require<DTypeError>(grad.dtype() == input.data.dtype(),
                      "{}: gradient {} is {}, its input {} (internal error)", node.name, i, grad.dtype(),
                      input.data.dtype());
}

}  // namespace

Variable::State::~State() {
  if (node.use_count() != 1 || node->inputs.empty()) return;
  std::vector<StatePtr> doomed = std::move(node->inputs);
  while (!doomed.empty()) {
    StatePtr state = std::move(doomed.back());
    doomed.pop_back();
    // The last owner empties it first, so that its own destructor has nothing to descend into.
    if (!state || state.use_count() != 1 || state->node.use_count() != 1) continue;
    for (StatePtr& input : state->node->inputs) doomed.push_back(std::move(input));
    state->node->inputs.clear();
  }
}

void run_backward(const std::shared_ptr<Variable::State>& root, Tensor grad) {
  Queue queue;
  queue.deliver(root, std::move(grad));
  while (!queue.empty()) {
    const NodePtr popped = queue.pop();
    Node& node = *popped;
    const std::vector<StatePtr> inputs = std::exchange(node.inputs, {});
    Gradients grads = run(node);
    require(grads.size() == inputs.size(), "{}: {} gradients for {} inputs (internal error)", node.name,
            grads.size(), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !inputs[i]->requires_grad || !grads[i].defined()) continue;
      check(node, i, *inputs[i], grads[i]);
      queue.deliver(inputs[i], std::move(grads[i]));
    }
  }
}

}  // namespace gyre
