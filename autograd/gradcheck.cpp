#include "autograd/gradcheck.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/random.h"

namespace gyre {
namespace {

using Values = std::vector<double>;

std::string_view name_of(Layout layout) {
  constexpr std::string_view names[] = {"contiguous", "transposed", "sliced", "expanded"};
  return names[static_cast<std::size_t>(layout)];
}

double largest(const Values& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

bool same_bits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

std::vector<Variable> leaves(const std::vector<Tensor>& inputs, bool requires_grad) {
  std::vector<Variable> result;
  for (const Tensor& input : inputs) result.emplace_back(input, requires_grad);
  return result;
}

Values evaluate(const Operation& operation, const std::vector<Tensor>& inputs) {
  const NoGrad no_grad;
  std::vector<Variable> variables = leaves(inputs, false);
  return operation(variables).data().to_vector();
}

/// Gradients of all inputs, each as its own list of values; zeros where none arrived.
std::vector<Values> propagate(const Operation& operation, const std::vector<Tensor>& inputs,
                              const Tensor& grad) {
  std::vector<Variable> variables = leaves(inputs, true);
  operation(variables).backward(grad);
  std::vector<Values> result;
  for (const Variable& v : variables) {
    result.push_back(v.grad().defined() ? v.grad().to_vector()
                                        : Values(static_cast<std::size_t>(v.data().numel())));
  }
  return result;
}

/// Row-major [outputs, inputs] matrix of derivatives.
struct Jacobian {
  std::size_t rows, cols;
  Values values;

  Jacobian(std::size_t outputs, std::size_t inputs) : rows(outputs), cols(inputs), values(outputs * inputs) {}
  /// weights · matrix.
  Values pull_back(const Values& weights) const {
    Values result(cols);
    for (std::size_t i = 0; i < rows; ++i) {
      if (weights[i] == 0) continue;
      for (std::size_t j = 0; j < cols; ++j) result[j] += weights[i] * values[i * cols + j];
    }
    return result;
  }
};

Jacobian numeric_jacobian(const Operation& operation, const std::vector<Tensor>& inputs, std::size_t which,
                          std::size_t outputs, double step) {
  std::vector<Tensor> moved = inputs;
  moved[which] = inputs[which].clone();
  Jacobian result(outputs, static_cast<std::size_t>(moved[which].numel()));
  for (std::size_t j = 0; j < result.cols; ++j) {
    const double centre = moved[which].data<double>()[j];
    const double above = centre + step, below = centre - step;
    moved[which].mutable_data<double>()[j] = above;
    const Values high = evaluate(operation, moved);
    moved[which].mutable_data<double>()[j] = below;
    const Values low = evaluate(operation, moved);
    moved[which].mutable_data<double>()[j] = centre;
    for (std::size_t i = 0; i < outputs; ++i) {
      result.values[i * result.cols + j] = (high[i] - low[i]) / (above - below);
    }
  }
  return result;
}

Tensor one_hot(const Shape& shape, std::int64_t hot) {
  Values values(static_cast<std::size_t>(shape.numel()));
  values[static_cast<std::size_t>(hot)] = 1;
  return Tensor::from(values, shape);
}

class Checker {
 public:
  Checker(const Operation& operation, const std::vector<Tensor>& inputs, const GradcheckOptions& options)
      : operation_(operation), inputs_(inputs), options_(options) {
    for (const Tensor& input : inputs) {
      require<DTypeError>(input.dtype() == DType::f64, "gradcheck takes f64 inputs, not {}", input.dtype());
      dense_.push_back(input.clone());
    }
  }

  GradcheckResult run() {
    check_forward();
    for (std::size_t i = 0; result_.pass && i < inputs_.size(); ++i) {
      jacobians_.push_back(numeric_jacobian(operation_, dense_, i, output_.size(), options_.step));
    }
    if (result_.pass) check_single_gradients();
    if (result_.pass) check_expanded_gradients();
    return result_;
  }

 private:
  void fail(std::string where) {
    if (result_.pass) result_.where = std::move(where);
    result_.pass = false;
  }

  void check_forward() {
    const NoGrad no_grad;
    std::vector<Variable> variables = leaves(inputs_, false);
    const Tensor y = operation_(variables).data();
    shape_ = y.shape();
    output_ = y.to_vector();
    if (largest(output_) == 0) return fail(fmt::format("all {} outputs are zero", output_.size()));
    if (!same_bits(output_, evaluate(operation_, inputs_)))
      return fail("a second forward gives another output");
    const Values dense = evaluate(operation_, dense_);
    const double scale = largest(dense);
    for (std::size_t i = 0; i < output_.size(); ++i) {
      if (std::abs(output_[i] - dense[i]) <= 1e-12 * scale) continue;
      return fail(fmt::format("output {} is {}, from dense inputs {}", i, output_[i], dense[i]));
    }
  }

  /// One output element at a time, the incoming gradient in each layout that keeps its values.
  void check_single_gradients() {
    for (const Layout layout : {Layout::contiguous, Layout::transposed, Layout::sliced}) {
      for (std::int64_t i = 0; i < shape_.numel(); ++i) {
        check(with_layout(one_hot(shape_, i), layout), name_of(layout));
      }
    }
  }

  /// Gradients that repeat along one dimension, and along all: they reach the closure with strides of 0.
  void check_expanded_gradients() {
    for (int dim = 0; dim < shape_.rank(); ++dim) {
      Shape thin = shape_;
      thin[dim] = 1;
      for (std::int64_t i = 0; i < thin.numel(); ++i) check(one_hot(thin, i).expand(shape_), "expanded");
    }
    check(Tensor::ones({}, DType::f64).expand(shape_), "fully expanded");
  }

  /// The gradients for `grad` against its products with the Jacobians.
  void check(const Tensor& grad, std::string_view kind) {
    if (!result_.pass) return;
    const std::vector<Values> grads = propagate(operation_, inputs_, grad);
    const std::vector<Values> again = propagate(operation_, inputs_, grad);
    const Values weights = grad.to_vector();
    const auto first =
        std::ranges::find_if(weights, [](double weight) { return weight != 0; }) - weights.begin();
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!same_bits(grads[i], again[i]))
        return fail(fmt::format("a second backward changes gradient {}", i));
      const Values expected = jacobians_[i].pull_back(weights);
      // The floor leaves the rounding of the differences out where all derivatives vanish.
      const double scale = std::max({largest(jacobians_[i].values), largest(expected), 1e-3});
      for (std::size_t j = 0; j < expected.size(); ++j) {
        const double error = std::abs(grads[i][j] - expected[j]) / scale;
        if (!(error <= result_.worst)) result_.worst = error;
        if (error <= options_.tolerance) continue;
        return fail(fmt::format("{} gradient of output {}: input {}, element {}: {}, central difference {}",
                                kind, first, i, j, grads[i][j], expected[j]));
      }
    }
  }

  const Operation& operation_;
  const std::vector<Tensor>& inputs_;
  const GradcheckOptions& options_;
  std::vector<Tensor> dense_;
  Shape shape_;
  Values output_;
  std::vector<Jacobian> jacobians_;
  GradcheckResult result_;
};

}  // namespace

Tensor with_layout(const Tensor& values, Layout layout) {
  const int rank = values.rank();
  if (layout == Layout::contiguous || values.numel() == 0 || rank == 0) return values.clone();
  if (layout == Layout::transposed) {
    std::array<int, Shape::max_rank> reversed{};
    for (int i = 0; i < rank; ++i) reversed[static_cast<std::size_t>(i)] = rank - 1 - i;
    const std::span<const int> dims(reversed.data(), static_cast<std::size_t>(rank));
    return values.permute(dims).clone().permute(dims);
  }
  if (layout == Layout::sliced) {
    Shape larger = values.shape();
    larger[-1] = 2 * larger[-1];
    // What lies between must never be read.
    const Tensor block = Tensor::full(larger, std::nan(""), values.dtype());
    Tensor view = block.slice(-1, 1, larger[-1], 2);
    view.copy_(values);
    return view;
  }
  int dim = 0;
  while (dim + 1 < rank && values.size(dim) == 1) ++dim;
  return values.slice(dim, 0, 1).clone().expand(values.shape());
}

GradcheckResult gradcheck(const Operation& operation, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  return Checker(operation, inputs, options).run();
}

GradcheckResult check_all_layouts(const Operation& operation, const std::vector<Shape>& shapes,
                                  const GradcheckOptions& options) {
  GradcheckResult result;
  for (const Layout layout : {Layout::contiguous, Layout::transposed, Layout::sliced, Layout::expanded}) {
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) {
      RandomStream stream(options.seed, Purpose::test, static_cast<std::uint64_t>(layout), inputs.size());
      inputs.push_back(
          with_layout(random_uniform(shape, options.low, options.high, stream, DType::f64), layout));
    }
    const GradcheckResult one = gradcheck(operation, inputs, options);
    result.worst = std::max(result.worst, one.worst);
    if (one.pass) continue;
    result.pass = false;
    result.where = fmt::format("{} inputs: {}", name_of(layout), one.where);
    break;
  }
  return result;
}

}  // namespace gyre
