#include "layers/initialise.h"

namespace gyre {

namespace {
thread_local bool skipped = false;
}  // namespace

WithoutInitialisation::WithoutInitialisation() : previous_(skipped) { skipped = true; }

WithoutInitialisation::~WithoutInitialisation() { skipped = previous_; }

Tensor Initialiser::operator()(const Shape& shape, RandomStream& stream) const {
  if (skipped) return Tensor::empty(shape);
  switch (kind) {
    case Kind::truncated_normal: return random_truncated_normal(shape, scale, stream);
    case Kind::uniform: return random_uniform(shape, -scale, scale, stream);
    case Kind::zero: break;
  }
  return Tensor::zeros(shape);
}

}  // namespace gyre
