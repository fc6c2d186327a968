#include "core/tensor.h"

#include <algorithm>
#include <utility>

#include "core/copy.h"
#include "core/cuda/copy.h"
#include "core/cuda/runtime.h"

namespace gyre {
namespace {

// First and one past the last element that a view touches, relative to its first element; {0, 0} if empty.
std::pair<std::int64_t, std::int64_t> extent_of(const Shape& shape, const Shape& strides) {
  std::int64_t low = 0, high = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return {0, 0};
    std::int64_t reach = 0;
    std::int64_t& bound = strides[i] < 0 ? low : high;
    require<ShapeError>(!__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
                            !__builtin_add_overflow(bound, reach, &bound),
                        "a view of shape {} and strides {} is too large", shape, strides);
  }
  return {low, high + 1};
}

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage()) return false;
  const auto [a_low, a_high] = extent_of(a.shape(), a.strides());
  const auto [b_low, b_high] = extent_of(b.shape(), b.strides());
  const auto* a_data = static_cast<const std::byte*>(a.raw_data());
  const auto* b_data = static_cast<const std::byte*>(b.raw_data());
  const auto a_size = static_cast<std::int64_t>(size_of(a.dtype()));
  const auto b_size = static_cast<std::int64_t>(size_of(b.dtype()));
  return a_data + a_low * a_size < b_data + b_high * b_size &&
         b_data + b_low * b_size < a_data + a_high * a_size;
}

void require_extents(const Shape& shape) {
  for (const std::int64_t extent : shape) {
    require<ShapeError>(extent >= 0, "shape {} has a negative extent", shape);
  }
}

std::size_t bytes_of(const Shape& shape, DType dtype) {
  require_extents(shape);
  std::int64_t bytes = 0;
  require<ShapeError>(
      !__builtin_mul_overflow(shape.numel(), static_cast<std::int64_t>(size_of(dtype)), &bytes),
      "shape {} of {} has more than 2^63 bytes", shape, dtype);
  return static_cast<std::size_t>(bytes);
}

}  // namespace

Tensor Tensor::dense(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype) {
  Tensor result;
  result.storage_ = std::move(storage);
  result.shape_ = shape;
  result.strides_ = shape.dense_strides();
  result.dtype_ = dtype;
  return result;
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  return dense(std::make_shared<Storage>(bytes_of(shape, dtype), device), shape, dtype);
}

Tensor Tensor::empty_pinned(const Shape& shape, DType dtype) {
  return dense(std::make_shared<Storage>(bytes_of(shape, dtype), HostMemory::pinned), shape, dtype);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0, dtype, device); }
Tensor Tensor::ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1, dtype, device); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor result = empty(shape, dtype, device);
  result.fill_(value);
  return result;
}

Tensor Tensor::arange(std::int64_t count, DType dtype) {
  require<ShapeError>(count >= 0, "arange takes a count of at least 0, not {}", count);
  Tensor result = empty({count}, DType::i64);
  auto* data = result.mutable_data<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) data[i] = i;
  return result.to(dtype);
}

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  Tensor result = empty(shape, dtype_of<T>());
  require<ShapeError>(std::cmp_equal(values.size(), result.numel()), "{} values do not fill shape {}",
                      values.size(), shape);
  std::copy(values.begin(), values.end(), result.mutable_data<T>());
  return result;
}

template Tensor Tensor::from(std::span<const double>, const Shape&);
template Tensor Tensor::from(std::span<const float>, const Shape&);
template Tensor Tensor::from(std::span<const std::int64_t>, const Shape&);
template Tensor Tensor::from(std::span<const std::uint8_t>, const Shape&);
template Tensor Tensor::from(std::span<const Half>, const Shape&);
template Tensor Tensor::from(std::span<const BFloat16>, const Shape&);

Tensor Tensor::view_of(std::shared_ptr<Storage> storage, const Shape& shape, const Shape& strides,
                       DType dtype, std::int64_t offset) {
  require(storage != nullptr, "a view needs a storage");
  require_extents(shape);
  require<ShapeError>(shape.rank() == strides.rank(), "shape {} and strides {} differ in rank", shape,
                      strides);
  const auto [low, high] = extent_of(shape, strides);
  const auto capacity = static_cast<std::int64_t>(storage->bytes() / size_of(dtype));
  require<ShapeError>(
      offset >= 0 && offset <= capacity && offset + low >= 0 && high <= capacity - offset,
      "a view of shape {}, strides {} and offset {} reaches outside a storage of {} {} elements", shape,
      strides, offset, capacity, dtype);
  Tensor result;
  result.storage_ = std::move(storage);
  result.shape_ = shape;
  result.strides_ = strides;
  result.offset_ = offset;
  result.dtype_ = dtype;
  return result;
}

Device Tensor::device() const {
  require(defined(), "the tensor is undefined");
  return storage_->device();
}

bool Tensor::is_contiguous() const {
  std::int64_t stride = 1;
  bool dense = true;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] == 0) return true;
    dense = dense && (shape_[i] == 1 || strides_[i] == stride);
    stride *= shape_[i];
  }
  return dense;
}

std::uint64_t Tensor::version() const {
  require(defined(), "the tensor is undefined");
  return storage_->version();
}

const void* Tensor::raw_data() const {
  require(defined(), "the tensor is undefined");
  return static_cast<const std::byte*>(storage_->data()) +
         offset_ * static_cast<std::int64_t>(size_of(dtype_));
}

void* Tensor::raw_mutable_data() {
  require(defined(), "the tensor is undefined");
  return static_cast<std::byte*>(storage_->mutable_data()) +
         offset_ * static_cast<std::int64_t>(size_of(dtype_));
}

const void* Tensor::raw_data(DType expected) const {
  require<DTypeError>(dtype_ == expected, "a tensor of {} was read as {}", dtype_, expected);
  return raw_data();
}

void* Tensor::raw_mutable_data(DType expected) {
  require<DTypeError>(dtype_ == expected, "a tensor of {} was written as {}", dtype_, expected);
  return raw_mutable_data();
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  Tensor result = empty(shape_, dtype_, device());
  result.copy_(*this);
  return result;
}

Tensor Tensor::to(DType dtype) const {
  require(defined(), "the tensor is undefined");
  if (dtype == dtype_) return *this;
  Tensor result = empty(shape_, dtype, device());
  result.copy_(*this);
  return result;
}

Tensor Tensor::to(Device target) const {
  if (target == device()) return *this;
  const Tensor from = contiguous();
  Tensor result = empty(shape_, dtype_, target);
  const Device source = device();
  const bool both = source.is_cuda() && target.is_cuda();
  if (both) cuda::synchronize(target.index);  // its memory is ready
  void* stream = cuda::compute_stream(source.is_cuda() ? source.index : target.index);
  cuda::copy_async(result.raw_mutable_data(), from.raw_data(), bytes_of(shape_, dtype_), stream);
  // Whoever holds either side may go on; only a pageable source has been read by now.
  if (both || target.is_cpu() || from.storage()->is_pinned()) cuda::synchronize(stream);
  return result;
}

void Tensor::copy_(const Tensor& source) {
  require_same_device(*this, source, "copy_");
  for (int i = 0; i < rank(); ++i) {
    require<ShapeError>(strides_[i] != 0 || shape_[i] <= 1, "copy_ into an expanded tensor of shape {}",
                        shape_);
  }
  Tensor from = source.expand(shape_);
  if (overlap(*this, from)) {
    const bool same = offset_ == from.offset_ && strides_ == from.strides_ && dtype_ == from.dtype_;
    if (same) return;
    from = source.clone().expand(shape_);
  }
  void* const to = raw_mutable_data();
  if (device().is_cuda()) {
    cuda::strided_copy(device().index, shape_, to, dtype_, strides_, from.raw_data(), from.dtype_,
                       from.strides_);
  } else {
    detail::strided_copy(shape_, to, dtype_, strides_, from.raw_data(), from.dtype_, from.strides_);
  }
}

void Tensor::fill_(double value) {
  require(defined(), "the tensor is undefined");
  // Repeated elements are written once.
  Shape shape = shape_;
  for (int i = 0; i < rank(); ++i) {
    if (strides_[i] == 0 && shape[i] > 1) shape[i] = 1;
  }
  void* const to = raw_mutable_data();
  if (device().is_cuda()) return cuda::strided_fill(device().index, shape, to, dtype_, strides_, value);
  detail::strided_copy(shape, to, dtype_, strides_, &value, DType::f64, Shape::filled(rank(), 0));
}

double Tensor::item() const {
  require(defined(), "the tensor is undefined");
  require<ShapeError>(numel() == 1, "item takes a tensor of one element, not {}", *this);
  return to_vector()[0];
}

double Tensor::at(std::initializer_list<std::int64_t> index) const {
  require(defined(), "the tensor is undefined");
  const Shape where(index);
  require<ShapeError>(where.rank() == rank(), "index {} does not fit shape {}", where, shape_);
  Tensor element = *this;
  for (const std::int64_t i : index) element = element.select(0, i);
  return element.item();
}

std::vector<double> Tensor::to_vector() const {
  require(defined(), "the tensor is undefined");
  if (device().is_cuda()) return to(Device::cpu()).to_vector();
  std::vector<double> values(static_cast<std::size_t>(numel()));
  detail::strided_copy(shape_, values.data(), DType::f64, shape_.dense_strides(), raw_data(), dtype_,
                       strides_);
  return values;
}

std::string Tensor::str() const {
  return defined() ? fmt::format("{}{} {}", dtype_, shape_, device()) : "undefined";
}

void require_same_device(const Tensor& a, const Tensor& b, std::string_view what) {
  require<DeviceError>(a.device() == b.device(), "{}: tensors on {} and {}", what, a.device(), b.device());
}

void require_same_dtype(const Tensor& a, const Tensor& b, std::string_view what) {
  require<DTypeError>(a.dtype() == b.dtype(), "{}: tensors of {} and {}", what, a.dtype(), b.dtype());
}

void require_shape(const Tensor& a, const Shape& shape, std::string_view what) {
  require<ShapeError>(a.shape() == shape, "{}: expected shape {}, got {}", what, shape, a.shape());
}

}  // namespace gyre
