#pragma once

// Tensor-core products of a warp: d += a b with fragments as the PTX manual's chapter on mma lays them out.
// With g = lane / 4 and t = lane % 4:
// - 16 bits, two neighbours along k in a register:
//   a (16 x 16): rows g, g + 8, g, g + 8 at columns 2t, 2t, 2t + 8, 2t + 8
//   b (16 x 8):  rows 2t, 2t + 8 of column g
// - tf32:
//   a (16 x 8): rows g, g + 8, g, g + 8 at columns t, t, t + 4, t + 4
//   b (8 x 8):  rows t, t + 4 of column g
// - both: d (16 x 8): row g at columns 2t, 2t + 1, then row g + 8 there

#include <cstdint>
#include <type_traits>

#include "core/cuda/prim_launch.cuh"
#include "core/cuda/prim_number.cuh"
#include "core/cuda/prim_warp.cuh"

namespace gyre::prim {

#ifndef __CUDACC__
/// Rows of 16 bytes that lanes 8i … 8i + 7 point to make matrix i, 8 x 8 16-bit numbers.
template <int count, bool transposed>
void load_matrices(std::uint32_t (&registers)[count], const void* row, Site site) {
  if (static_cast<int>(threadIdx.x % 32) < 8 * count) simt::require_aligned(row, 16, site);
  const auto* const slots =
      simt::exchange(transposed ? "ldmatrix_trans" : "ldmatrix", site, &row, sizeof row);
  const unsigned group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
  for (unsigned i = 0; i < count; ++i) {
    std::uint16_t halves[2];
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned from = transposed ? pair + j : group, at = transposed ? group : pair + j;
      halves[j] = static_cast<const std::uint16_t*>(slot<const void*>(slots, 8 * i + from))[at];
    }
    registers[i] = static_cast<std::uint32_t>(halves[0]) | static_cast<std::uint32_t>(halves[1]) << 16;
  }
}
#endif

/// Loads `count` (1, 2, 4) matrices of 8 x 8 16-bit numbers from shared memory: lane i of the first 8 count
/// points to row i % 8, 16 bytes, of matrix i / 8. Register i holds row lane / 4, columns 2 (lane % 4) and
/// the next, of matrix i.
template <int count>
GYRE_DEVICE void ldmatrix(std::uint32_t (&registers)[count], const void* row,
                          [[maybe_unused]] Site site = {}) {
  static_assert(count == 1 || count == 2 || count == 4);
#ifdef __CUDACC__
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(registers[0])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(registers[0]), "=r"(registers[1])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address)
                 : "memory");
#else
  load_matrices<count, false>(registers, row, site);
#endif
}

/// ldmatrix of the transposed matrices: rows 2 (lane % 4) and the next, column lane / 4.
template <int count>
GYRE_DEVICE void ldmatrix_trans(std::uint32_t (&registers)[count], const void* row,
                                [[maybe_unused]] Site site = {}) {
  static_assert(count == 1 || count == 2 || count == 4);
#ifdef __CUDACC__
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(registers[0])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(registers[0]), "=r"(registers[1])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address)
                 : "memory");
#else
  load_matrices<count, true>(registers, row, site);
#endif
}

#ifndef __CUDACC__
struct Fragments {
  std::uint32_t a[4], b[2];
};

/// d += a b, where value(register, which) reads number `which` of the `per` numbers along k in a register.
/// Sums exactly enough in f64 and rounds once; tensor cores round within the sum.
template <int per, class Value>
void multiply_fragments(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Value value,
                        const char* what, Site site) {
  const Fragments own{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const auto* const slots = simt::exchange(what, site, &own, sizeof own);
  const unsigned group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned column = pair + i % 2;
    double sum = static_cast<double>(d[i]);
    for (unsigned t = 0; t < 4; ++t) {
      const Fragments rows = slot<Fragments>(slots, group * 4 + t),
                      columns = slot<Fragments>(slots, column * 4 + t);
      for (unsigned half = 0; half < 2; ++half)
        for (unsigned j = 0; j < per; ++j)
          sum += static_cast<double>(value(rows.a[half * 2 + i / 2], j)) *
                 static_cast<double>(value(columns.b[half], j));
    }
    d[i] = static_cast<float>(sum);
  }
}
#endif

/// d (16 x 8) += a (16 x 16) b (16 x 8) with f32 sums; T is half_t or bf16_t.
template <class T>
GYRE_DEVICE void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     [[maybe_unused]] Site site = {}) {
  static_assert(std::is_same<T, half_t>::value || std::is_same<T, bf16_t>::value);
#ifdef __CUDACC__
  if constexpr (std::is_same<T, half_t>::value)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const auto value = [](std::uint32_t pair, unsigned which) {
    return to_float(T{static_cast<std::uint16_t>(which == 0 ? pair : pair >> 16)});
  };
  multiply_fragments<2>(d, a, b, value, "mma", site);
#endif
}

/// d (16 x 8) += a (16 x 8) b (8 x 8) with numbers from to_tf32 and f32 sums.
GYRE_DEVICE void mma_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                          [[maybe_unused]] Site site = {}) {
#ifdef __CUDACC__
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const auto value = [](std::uint32_t bits, unsigned) { return bit_cast<float>(bits & ~0x1FFFU); };
  multiply_fragments<1>(d, a, b, value, "mma_tf32", site);
#endif
}

}  // namespace gyre::prim
