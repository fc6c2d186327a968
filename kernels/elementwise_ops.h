#pragma once

namespace gyre::kernels {

enum class BinaryOp { add, sub, mul, div };
enum class UnaryOp { neg, exp, log, sqrt, tanh, relu, gelu /**< exact, with erf */ };

}  // namespace gyre::kernels
