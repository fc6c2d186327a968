#include "layers/conv.h"

#include <array>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/ops/shape.h"

namespace gyre {

namespace {

Tensor as_tensor(const std::vector<std::int64_t>& index) {
  return Tensor::from(index, {static_cast<std::int64_t>(index.size())});
}

/// Into [size²·C·T + 1] values, whose last is zero, for every (place, c, q, a): x_{c,a}(a·q).
Tensor conv_index(const Group& group, const ConvConfig& config, std::int64_t channels) {
  const int side = static_cast<int>(config.kernel);
  const std::int64_t size = config.size, width = channels * group.order(), out = config.out_size();
  std::vector<std::int64_t> index;
  index.reserve(static_cast<std::size_t>(out * out * width * side * side));
  for (std::int64_t place = 0; place < out * out; ++place) {
    const std::int64_t top = place / out * config.stride - config.padding;
    const std::int64_t left = place % out * config.stride - config.padding;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (int q = 0; q < side * side; ++q) {
        for (int a = 0; a < group.order(); ++a) {
          const Pixel p = act_on_pixel(group, a, {q / side, q % side}, side, side);
          const std::int64_t row = top + p.row, col = left + p.col;
          const bool inside = row >= 0 && row < size && col >= 0 && col < size;
          index.push_back(inside ? (row * size + col) * width + c * group.order() + a : size * size * width);
        }
      }
    }
  }
  return as_tensor(index);
}

const ConvConfig& checked(const Group& group, const ConvConfig& config) {
  require<ValueError>(group.has_image_action(), "{} has no exact image action", group.name());
  const std::int64_t size = config.size, kernel = config.kernel, stride = config.stride;
  require<ValueError>(size >= 1 && kernel >= 1 && stride >= 1 && config.padding >= 0,
                      "convolution: size {}, kernel {}, stride {} must be positive, padding {} not negative",
                      size, kernel, stride, config.padding);
  const std::int64_t room = size + 2 * config.padding - kernel;
  require<ShapeError>(room >= 0, "convolution: kernel {} is larger than {} tokens with padding {}", kernel,
                      size, config.padding);
  require<ShapeError>(
      room % stride == 0,
      "convolution: kernel {} with stride {} and padding {} leaves {} of {} tokens over at the "
      "far edge, which breaks the symmetry; nearest sizes {} and {}",
      kernel, stride, config.padding, room % stride, size, size - room % stride,
      size - room % stride + stride);
  return config;
}

/// Into the values of two rows of tokens, for every 2×2 tokens: side by side, or as orbits.
Tensor merging_index(const LayerFamily& family, std::int64_t size, std::int64_t width) {
  static constexpr std::array<Pixel, 4> columns_first{{{0, 0}, {1, 0}, {0, 1}, {1, 1}}};
  static constexpr std::array<Pixel, 4> around{{{0, 0}, {0, 1}, {1, 1}, {1, 0}}};
  std::vector<std::int64_t> index;
  for (std::int64_t left = 0; left < size; left += 2) {
    const auto place = [&](const Pixel& p) { return (p.row * size + left + p.col) * width; };
    if (!family.equivariant()) {
      for (const Pixel& p : columns_first)
        for (std::int64_t c = 0; c < width; ++c) index.push_back(place(p) + c);
      continue;
    }
    for (std::int64_t c = 0; c < width; c += family.order())
      for (const Pixel& p : around)
        for (int a = 0; a < family.order(); ++a)
          index.push_back(place(act_on_pixel(*family.group, a, p, 2, 2)) + c + a);
  }
  return as_tensor(index);
}

}  // namespace

EqConv::EqConv(const Group& group, const ConvConfig& config, std::int64_t in, std::int64_t out, bool bias,
               RandomStream& stream, kernels::EqLinearOptions options)
    : EqLinear(group, in * checked(group, config).kernel * config.kernel, out, bias, stream, options),
      config_(config),
      channels_(in),
      index_(conv_index(group, config, in)) {
  add_constant(index_);
}

Variable EqConv::forward(const Variable& x) {
  const std::int64_t tokens = config_.size * config_.size, width = channels_ * group().order();
  require<ShapeError>(x.rank() == 3 && x.size(1) == tokens && x.size(2) == width,
                      "{} takes [batch, {}, {}], not {}", kind(), tokens, width, x.shape());
  const std::int64_t batch = x.size(0), out = config_.out_size() * config_.out_size();
  Variable flat = reshape(autocast(x), {batch, tokens * width});
  if (config_.padding > 0)
    flat = concat({flat, Variable(Tensor::zeros({batch, 1}, flat.dtype(), x.device()))}, 1);
  return EqLinear::forward(reshape(gather(flat, index_), {batch, out, index_.numel() / out}));
}

std::string EqConv::describe() const {
  return fmt::format("{} to {} per element, {}, {}x{}, kernel {}, stride {}, padding {}", channels_,
                     channels_out(), group().name(), config_.size, config_.size, config_.kernel,
                     config_.stride, config_.padding);
}

PatchMerging::PatchMerging(const LayerFamily& family, std::int64_t size, std::int64_t width,
                           RandomStream& stream)
    : equivariant_(family.equivariant()), size_(size), width_(width) {
  require<ShapeError>(size > 0 && size % 2 == 0, "patch merging needs an even grid, not {}x{}", size, size);
  index_ = merging_index(family, size, width);
  add_constant(index_);
  norm_ = &add("norm", equivariant_ ? family.norm(2 * width) : family.norm(4 * width, true));
  reduction_ =
      &add("reduction", family.linear(4 * width, 2 * width, stream, kernels::Activation::none, equivariant_));
}

Variable PatchMerging::forward(const Variable& x) {
  require<ShapeError>(x.rank() == 3 && x.size(1) == size_ * size_ && x.size(2) == width_,
                      "{} takes [batch, {}, {}], not {}", kind(), size_ * size_, width_, x.shape());
  const std::int64_t batch = x.size(0);
  const Variable pairs = reshape(equivariant_ ? autocast(x) : x, {batch * size_ / 2, 2 * size_ * width_});
  const Variable merged = reshape(gather(pairs, index_), {batch, size_ * size_ / 4, 4 * width_});
  return equivariant_ ? (*norm_)((*reduction_)(merged)) : widen((*reduction_)((*norm_)(merged)));
}

std::string PatchMerging::describe() const {
  return fmt::format("{}x{} of {} to {}x{} of {}", size_, size_, width_, size_ / 2, size_ / 2, 2 * width_);
}

}  // namespace gyre
