#include "layers/mlp.h"

#include "layers/dropout.h"

namespace gyre {

Mlp::Mlp(const LayerFamily& family, std::int64_t width, std::int64_t hidden, double dropout,
         std::uint64_t site, RandomStream& stream)
    : equivariant_(family.equivariant()),
      width_(width),
      hidden_(hidden),
      fc1_(&add("fc1", family.linear(width, hidden, stream, kernels::Activation::gelu))),
      drop1_(&add<Dropout>("drop1", dropout, family.order(), site)),
      fc2_(&add("fc2", family.linear(hidden, width, stream))),
      drop2_(&add<Dropout>("drop2", dropout, family.order(), site + 1)) {}

Variable Mlp::forward(const Variable& x) { return (*drop2_)((*fc2_)((*drop1_)((*fc1_)(x)))); }

std::string Mlp::describe() const { return fmt::format("{} to {} and back", width_, hidden_); }

}  // namespace gyre
