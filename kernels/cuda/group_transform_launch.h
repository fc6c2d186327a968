#pragma once

#include <cstdint>

namespace gyre::kernels::cuda {

// Dense device arrays; T = float, double, prim::half_t or prim::bf16_t, the 16-bit types with f32 arithmetic.

/// A matrix [rows, cols] between group elements and products, row-major.
struct GroupMatrix {
  int rows = 0, cols = 0;
  double values[112] = {};
};
/// Whether there are kernels for groups of `order` elements and forms of `products` products.
bool has_group_transform(int order, int products);

/// planes[p][i] = Σ_t m(p, t) · x[i][t] for m [P, T], x [count, T], planes `plane` elements apart.
template <class T>
void launch_to_planes(const GroupMatrix& m, std::int64_t count, const T* x, std::int64_t plane, T* planes,
                      void* stream);

/// What becomes of the result of from_planes.
template <class T>
struct PlanesTo {
  T* y;                     ///< [count, T]
  const T* bias = nullptr;  ///< [channels], added to element i at i mod channels
  std::int64_t channels = 1;
  bool gelu = false;  ///< y = x·Φ(x) of the sum
  T* sum = nullptr;   ///< the sum before gelu, if wanted
};
/// y[i][t] = Σ_p m(t, p) · planes[p][i] + bias, for m [T, P], planes `plane` elements apart. P: T, or float
/// for a 16-bit T.
template <class P, class T>
void launch_from_planes(const GroupMatrix& m, std::int64_t count, std::int64_t plane, const P* planes,
                        const PlanesTo<T>& to, void* stream);

}  // namespace gyre::kernels::cuda
