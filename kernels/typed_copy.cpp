#include "kernels/typed_copy.h"

namespace gyre::kernels {

Tensor TypedCopy::of(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const std::scoped_lock lock(mutex_);
  if (!copy_.defined() || copy_.dtype() != dtype || !source_.is(x)) {
    copy_ = x.to(dtype).contiguous();
    source_ = Source::of(x);
    ++renewals_;
  }
  return copy_;
}

void TypedCopy::clear() {
  const std::scoped_lock lock(mutex_);
  source_ = {};
  copy_ = {};
}

}  // namespace gyre::kernels
