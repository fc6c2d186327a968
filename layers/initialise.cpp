#include "layers/initialise.h"

namespace gyre {

Tensor Initialiser::operator()(const Shape& shape, RandomStream& stream) const {
  switch (kind) {
    case Kind::truncated_normal: return random_truncated_normal(shape, scale, stream);
    case Kind::uniform: return random_uniform(shape, -scale, scale, stream);
    case Kind::zero: break;
  }
  return Tensor::zeros(shape);
}

}  // namespace gyre
