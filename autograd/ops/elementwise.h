#pragma once

#include "autograd/variable.h"

namespace gyre {

// Shapes broadcast against each other, aligned on the right; ShapeError names both where they do not.
Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }

Variable neg(const Variable& x);
Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
Variable tanh(const Variable& x);
Variable relu(const Variable& x);
/// x·Φ(x) with the exact error function.
Variable gelu(const Variable& x);
/// scale·x + shift.
Variable affine(const Variable& x, double scale, double shift = 0);

}  // namespace gyre
