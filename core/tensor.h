#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/storage.h"

namespace gyre {

/// A strided view of a Storage: plain data, no gradients. Copies share the storage.
class Tensor {
 public:
  Tensor() = default;  ///< undefined; `defined()` is false

  /// Uninitialised.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = {});
  /// Uninitialised, on the CPU in memory that a CUDA device copies from while the host goes on; plain memory
  /// where no device answers.
  static Tensor empty_pinned(const Shape& shape, DType dtype = DType::f32);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = {});
  static Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = {});
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = {});
  /// 0, 1, …, count-1.
  static Tensor arange(std::int64_t count, DType dtype = DType::i64);
  /// A dense copy of `values`; throws ShapeError if the counts differ.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }
  /// A view of `storage` starting `offset` elements in; throws ShapeError if it reaches outside.
  static Tensor view_of(std::shared_ptr<Storage> storage, const Shape& shape, const Shape& strides,
                        DType dtype, std::int64_t offset = 0);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  ///< in elements
  int rank() const { return shape_.rank(); }
  std::int64_t size(int dim) const { return shape_[dim]; }
  std::int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const;
  bool is_contiguous() const;
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// Of the storage, hence shared by all views of it.
  std::uint64_t version() const;

  /// First element; throws DTypeError unless T is the element type.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw_data(dtype_of<T>()));
  }
  /// Renews the version: take it right before writing, and anew after the tensor was read by a cache.
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(raw_mutable_data(dtype_of<T>()));
  }
  const void* raw_data() const;
  void* raw_mutable_data();

  // Views: they share the storage, no element moves. Dimensions may be negative.
  Tensor permute(std::initializer_list<int> dims) const;
  Tensor permute(std::span<const int> dims) const;
  Tensor transpose(int a, int b) const;
  /// Elements start, start+step, … below `end` of `dim`; step ≥ 1.
  Tensor slice(int dim, std::int64_t start, std::int64_t end, std::int64_t step = 1) const;
  /// Index `i` of `dim`, which disappears.
  Tensor select(int dim, std::int64_t i) const;
  /// Extents of 1 repeat with stride 0; new leading dimensions are allowed.
  Tensor expand(const Shape& shape) const;
  Tensor unsqueeze(int dim) const;
  Tensor squeeze(int dim) const;

  /// One extent may be -1. A view where strides allow, else a copy.
  Tensor reshape(const Shape& shape) const;
  /// Itself if dense, else a dense copy.
  Tensor contiguous() const;
  /// Always a dense copy with a storage of its own.
  Tensor clone() const;
  /// Converts; itself if nothing changes. Floating values become integers by truncation, and f16 or bf16 by
  /// way of f32, to nearest, ties to even.
  Tensor to(DType dtype) const;
  /// A dense copy on `device`; itself if nothing changes. Throws DeviceError with the reason if it is
  /// missing.
  Tensor to(Device device) const;

  /// Element-wise copy with broadcasting and conversion into this view, on the same device.
  void copy_(const Tensor& source);
  void fill_(double value);
  void zero_() { fill_(0); }
  /// The only element, as f64; throws ShapeError for other counts. On CUDA this, at and to_vector wait for
  /// the device.
  double item() const;
  /// Element at the given index, as f64: for tests and messages.
  double at(std::initializer_list<std::int64_t> index) const;
  /// All elements in row-major order, as f64.
  std::vector<double> to_vector() const;
  /// "f32[2, 3] cpu".
  std::string str() const;

 private:
  static Tensor dense(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype);
  const void* raw_data(DType expected) const;
  void* raw_mutable_data(DType expected);

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Shape strides_;
  std::int64_t offset_ = 0;
  DType dtype_ = DType::f32;
};

/// Throws DeviceError, DTypeError or ShapeError, naming `what`, unless both agree.
void require_same_device(const Tensor& a, const Tensor& b, std::string_view what);
void require_same_dtype(const Tensor& a, const Tensor& b, std::string_view what);
void require_shape(const Tensor& a, const Shape& shape, std::string_view what);

}  // namespace gyre

/// As Tensor::str, only made when an error text is.
template <>
struct fmt::formatter<gyre::Tensor> : fmt::formatter<std::string_view> {
  auto format(const gyre::Tensor& tensor, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tensor.str(), context);
  }
};
