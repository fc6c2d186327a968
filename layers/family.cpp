#include "layers/family.h"

#include "layers/eq_linear.h"
#include "layers/linear.h"

namespace gyre {

std::int64_t LayerFamily::channels(std::int64_t width) const {
  require<ShapeError>(width > 0 && width % order() == 0, "width {} is not a positive multiple of {} ({})",
                      width, order(), group ? group->name() : "ordinary layers");
  return width / order();
}

std::unique_ptr<Module> LayerFamily::linear(std::int64_t in, std::int64_t out, RandomStream& stream,
                                            kernels::Activation activation, bool bias) const {
  if (!group) {
    return std::make_unique<Linear>(channels(in), channels(out), bias, stream,
                                    Initialiser::truncated_normal(), activation);
  }
  return std::make_unique<EqLinear>(*group, channels(in), channels(out), bias, stream, options, activation);
}

std::unique_ptr<LayerNorm> LayerFamily::norm(std::int64_t width, bool before_product) const {
  std::unique_ptr<LayerNorm> norm;
  if (group)
    norm = std::make_unique<EqLayerNorm>(*group, channels(width), norm_eps);
  else
    norm = std::make_unique<LayerNorm>(channels(width), norm_eps);
  if (before_product) norm->set_before_product();
  return norm;
}

}  // namespace gyre
