#include <array>
#include <optional>
#include <utility>

#include "core/tensor.h"

namespace gyre {
namespace {

// `shape` with its one extent of -1 replaced, so that the element counts agree.
Shape resolve(const Shape& shape, const Tensor& x) {
  Shape result = shape;
  int unknown = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    require<ShapeError>(shape[i] >= -1 && (shape[i] != -1 || unknown < 0), "{} is no shape to reshape {} to",
                        shape, x);
    if (shape[i] == -1) unknown = i;
  }
  if (unknown >= 0) {
    result[unknown] = 1;
    const std::int64_t known = result.numel();
    require<ShapeError>(known > 0 && x.numel() % known == 0, "{} does not reshape to {}", x, shape);
    result[unknown] = x.numel() / known;
  }
  require<ShapeError>(result.numel() == x.numel(), "{} does not reshape to {}", x, shape);
  return result;
}

// Strides under which `shape` shows the elements of `x` in order without a copy, if there are any.
std::optional<Shape> reshaped_strides(const Tensor& x, const Shape& shape) {
  if (x.is_contiguous()) return shape.dense_strides();
  Shape strides = Shape::filled(shape.rank(), 0);
  int next = shape.rank() - 1;
  for (int i = x.rank() - 1; i >= 0;) {
    if (x.size(i) == 1) {
      --i;
      continue;
    }
    // A maximal run of old dimensions that one stride walks through.
    const std::int64_t step = x.strides()[i];
    std::int64_t run = x.size(i);
    for (--i; i >= 0 && (x.size(i) == 1 || x.strides()[i] == run * step); --i) run *= x.size(i);
    std::int64_t covered = 1;
    while (next >= 0 && (covered < run || shape[next] == 1)) {
      strides[next] = covered * step;
      covered *= shape[next--];
    }
    if (covered != run) return std::nullopt;
  }
  for (; next >= 0; --next) strides[next] = 1;  // leading extents of 1
  return strides;
}

}  // namespace

Tensor Tensor::permute(std::initializer_list<int> dims) const {
  return permute(std::span<const int>(dims.begin(), dims.size()));
}

Tensor Tensor::permute(std::span<const int> dims) const {
  require(defined(), "the tensor is undefined");
  const auto fail = [&] {
    return ShapeError(
        fmt::format("[{}] is no permutation of the dimensions of {}", fmt::join(dims, ", "), *this));
  };
  if (dims.size() != static_cast<std::size_t>(rank())) throw fail();
  Tensor result = *this;
  std::array<bool, Shape::max_rank> used{};
  for (int i = 0; i < rank(); ++i) {
    const int dim = shape_.wrap(dims[static_cast<std::size_t>(i)]);
    if (std::exchange(used[static_cast<std::size_t>(dim)], true)) throw fail();
    result.shape_[i] = shape_[dim];
    result.strides_[i] = strides_[dim];
  }
  return result;
}

Tensor Tensor::transpose(int a, int b) const {
  require(defined(), "the tensor is undefined");
  Tensor result = *this;
  std::swap(result.shape_[a], result.shape_[b]);
  std::swap(result.strides_[a], result.strides_[b]);
  return result;
}

Tensor Tensor::slice(int dim, std::int64_t start, std::int64_t end, std::int64_t step) const {
  require(defined(), "the tensor is undefined");
  require<ShapeError>(start >= 0 && start <= end && end <= size(dim) && step >= 1,
                      "slice {}:{}:{} does not fit dimension {} of {}", start, end, step, dim, *this);
  Tensor result = *this;
  result.shape_[dim] = (end - start + step - 1) / step;
  // An empty view keeps its offset, which stays inside the storage.
  if (start < end) result.offset_ += start * strides_[dim];
  result.strides_[dim] = strides_[dim] * step;
  return result;
}

Tensor Tensor::select(int dim, std::int64_t i) const {
  require(defined(), "the tensor is undefined");
  require<ShapeError>(i >= 0 && i < size(dim), "index {} is out of range for dimension {} of {}", i, dim,
                      *this);
  return slice(dim, i, i + 1).squeeze(dim);
}

Tensor Tensor::expand(const Shape& shape) const {
  require(defined(), "the tensor is undefined");
  Tensor result = *this;
  result.shape_ = shape;
  result.strides_ = Shape::filled(shape.rank(), 0);
  bool fits = shape.rank() >= rank();
  for (int i = 1; fits && i <= rank(); ++i) {
    fits = shape_[-i] == shape[-i] || (shape_[-i] == 1 && shape[-i] >= 0);
    result.strides_[-i] = shape_[-i] == shape[-i] ? strides_[-i] : 0;
  }
  for (int i = rank(); fits && i < shape.rank(); ++i) fits = shape[shape.rank() - 1 - i] >= 0;
  require<ShapeError>(fits, "{} does not expand to {}", *this, shape);
  return result;
}

Tensor Tensor::unsqueeze(int dim) const {
  require(defined(), "the tensor is undefined");
  const int at = dim < 0 ? dim + rank() + 1 : dim;
  require<ShapeError>(at >= 0 && at <= rank(), "dimension {} cannot be inserted into {}", dim, *this);
  Tensor result = *this;
  result.shape_ = {};
  result.strides_ = {};
  for (int i = 0; i <= rank(); ++i) {
    if (i == at) {
      result.shape_.push_back(1);
      result.strides_.push_back(i < rank() ? strides_[i] * shape_[i] : 1);
    }
    if (i < rank()) {
      result.shape_.push_back(shape_[i]);
      result.strides_.push_back(strides_[i]);
    }
  }
  return result;
}

Tensor Tensor::squeeze(int dim) const {
  require(defined(), "the tensor is undefined");
  const int at = shape_.wrap(dim);
  require<ShapeError>(shape_[at] == 1, "dimension {} of {} is not 1", dim, *this);
  Tensor result = *this;
  result.shape_ = {};
  result.strides_ = {};
  for (int i = 0; i < rank(); ++i) {
    if (i == at) continue;
    result.shape_.push_back(shape_[i]);
    result.strides_.push_back(strides_[i]);
  }
  return result;
}

Tensor Tensor::reshape(const Shape& shape) const {
  require(defined(), "the tensor is undefined");
  const Shape target = resolve(shape, *this);
  Tensor result = *this;
  if (const auto strides = reshaped_strides(*this, target)) {
    result.strides_ = *strides;
  } else {
    result = clone();
    result.strides_ = target.dense_strides();
  }
  result.shape_ = target;
  return result;
}

}  // namespace gyre
