#include "layers/activation.h"

#include "autograd/ops/elementwise.h"

namespace gyre {

Variable Gelu::forward(const Variable& x) { return gelu(x); }

}  // namespace gyre
