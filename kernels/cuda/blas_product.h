#pragma once

#include "kernels/cuda/blas.h"

namespace gyre::kernels::cuda {

/// A product as a library takes it: nothing empty, each operand with a unit stride.
struct Product {
  DType dtype, result;
  GemmShape shape;
  const void *a, *b;
  void* c;
  double alpha = 1;
  bool accumulate = false;
  const void* bias = nullptr;
  bool gelu_tanh = false;
  void* pre_activation = nullptr;

  bool has_epilogue() const { return bias != nullptr || gelu_tanh; }
};

/// Runs on the compute stream of device `index`. False, with nothing done, if the library lacks this
/// epilogue.
bool run_product(int index, const Product& product);

}  // namespace gyre::kernels::cuda
