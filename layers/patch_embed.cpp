#include "layers/patch_embed.h"

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/ops/linear_algebra.h"
#include "autograd/ops/shape.h"
#include "kernels/elementwise.h"
#include "kernels/gather.h"
#include "layers/initialise.h"
#include "layers/orbit.h"

namespace gyre {

namespace {

/// [B, in, S, S] → [B, patches, values of one patch] in the order of the index.
Variable gather_patches(const PatchConfig& config, const Variable& images, const Tensor& index,
                        std::string_view what) {
  const std::int64_t size = config.image_size;
  require<ShapeError>(images.rank() == 4 && images.size(1) == config.in_channels && images.size(2) == size &&
                          images.size(3) == size,
                      "{} takes images [batch, {}, {}, {}], not {}", what, config.in_channels, size, size,
                      images.shape());
  const std::int64_t batch = images.size(0);
  const std::int64_t grid = size / config.patch;
  const std::int64_t values = index.numel() / (grid * grid);
  const Variable flat = reshape(autocast(images), {batch, config.in_channels * size * size});
  return reshape(gather(flat, index), {batch, grid * grid, values});
}

Shape filter_shape(const PatchConfig& config, std::int64_t out) {
  return {out, config.in_channels, config.patch, config.patch};
}

std::string describe_patches(const PatchConfig& config) {
  return fmt::format("{}x{}x{}, patch {}", config.in_channels, config.image_size, config.image_size,
                     config.patch);
}

std::int64_t orbit_channels(const Group& group, const PatchConfig& config) {
  return config.in_channels * orbit_table(group, static_cast<int>(config.patch)).orbits();
}

}  // namespace

PatchEmbed::PatchEmbed(const PatchConfig& config, std::int64_t width, RandomStream& stream)
    : config_(config),
      weight_(&add_parameter("proj.weight",
                             Initialiser::truncated_normal()(filter_shape(config, width), stream))),
      bias_(&add_parameter("proj.bias", Tensor::zeros({width}))),
      patch_index_(patch_index(Group::get("c1"), config.in_channels, config.image_size, config.patch)) {
  add_constant(patch_index_);
}

Variable PatchEmbed::forward(const Variable& images) {
  const Variable patches = gather_patches(config_, images, patch_index_, kind());
  const Variable rows = reshape(weight_->variable, {weight_->variable.size(0), -1});
  return linear(patches, rows, bias_->variable, packed_);
}

std::string PatchEmbed::describe() const { return describe_patches(config_); }

EqPatchEmbed::EqPatchEmbed(const Group& group, const PatchConfig& config, std::int64_t channels,
                           RandomStream& stream, kernels::EqLinearOptions options)
    : EqProduct(group, orbit_channels(group, config), channels, options),
      config_(config),
      patch_index_(patch_index(group, config.in_channels, config.image_size, config.patch)),
      filter_index_(filter_index(group, config.in_channels, config.patch)),
      filter_scale_(filter_scale(group, config.in_channels, config.patch)) {
  for (Tensor* constant : {&patch_index_, &filter_index_, &filter_scale_}) add_constant(*constant);
  const auto fan_in = static_cast<double>(config.in_channels * config.patch * config.patch);
  const Initialiser initialiser = Initialiser::uniform(1 / std::sqrt(fan_in));
  weight_ = &add_parameter("proj.weight", initialiser(filter_shape(config, channels), stream));
  bias_ = &add_parameter("proj.bias", initialiser({channels}, stream));
}

Variable EqPatchEmbed::derived_weight() {
  const Variable& filter = weight_->variable;
  const std::int64_t filters = filter.size(0);
  const std::int64_t values = config_.in_channels * config_.patch * config_.patch;
  const auto scaled = [scale = filter_scale_](const Tensor& x) {
    return scale.defined() ? kernels::binary(kernels::BinaryOp::mul, x, scale.to(x.dtype())) : x;
  };
  if (!derived_.defined() || derived_from_ != filter.data().version()) {
    derived_ = scaled(kernels::gather(filter.data().reshape({filters, values}), filter_index_))
                   .reshape({filters, channels_in(), group().order()});
    derived_from_ = filter.data().version();
  }
  return make_result("orbit_filter", derived_, {filter},
                     [scaled, filters, values, index = filter_index_,
                      shape = filter.shape()](const Tensor& grad) -> Gradients {
                       const Tensor rows = scaled(grad.reshape({filters, index.numel()}));
                       return {kernels::gather_backward(rows, index, values).reshape(shape)};
                     });
}

Variable EqPatchEmbed::forward(const Variable& images) {
  const Variable patches = gather_patches(config_, images, patch_index_, kind());
  return product(patches, derived_weight(), bias_->variable);
}

std::string EqPatchEmbed::describe() const {
  return fmt::format("{}, {}", describe_patches(config_), group().name());
}

}  // namespace gyre
