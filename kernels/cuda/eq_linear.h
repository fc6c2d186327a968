#pragma once

#include <string>

#include "kernels/eq_call.h"

namespace gyre::kernels::cuda {

/// Packed or naive, as `backend` says or whichever is faster for the sizes at hand; `fused` counts as packed.
void eq_linear_forward(const EqForward& call, Tensor& y);
void eq_linear_backward(const EqBackward& call, LinearGrads& grads);
/// What these choose; `packed` or `naive`.
EqImplementation eq_linear_choice(const EqShape& shape, EqBackend backend);

/// One product with the expanded matrix.
void naive_eq_linear_forward(const EqForward& call, Tensor& y);
void naive_eq_linear_backward(const EqBackward& call, LinearGrads& grads);
/// Library products on planes, in slabs of rows whose planes stay in the cache of the device.
void packed_eq_linear_forward(const EqForward& call, Tensor& y);
void packed_eq_linear_backward(const EqBackward& call, LinearGrads& grads);

/// w dense [D, C, T] → dense [D·T, C·T].
void expand_eq_weight(const Group& group, const Tensor& w, Tensor& dense);
/// dense [D·T, C·T] → w dense [D, C, T].
void fold_eq_weight(const Group& group, const Tensor& dense, Tensor& w);

}  // namespace gyre::kernels::cuda
