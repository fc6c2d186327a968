#include <array>
#include <bit>
#include <cstdint>

#include "core/half.h"
#include "tests/simt/cases.h"
#include "tests/simt/support.h"

namespace gyre::simt {
namespace {

// The fragment layouts of the PTX manual: which element of its matrix is number `i` of lane `lane`.
struct Place {
  int row, column;
};
// ldmatrix (.trans exchanges rows and columns), i of 2.
Place of_matrix(int lane, int i) { return {lane / 4, lane % 4 * 2 + i}; }
// m16n8k16, 16 bits: a0 … a7 of 16 x 16, b0 … b3 of 16 x 8, and c0 … c3 of 16 x 8 of every shape.
Place of_a16(int lane, int i) {
  return {lane / 4 + (i / 2 % 2 == 0 ? 0 : 8), lane % 4 * 2 + i % 2 + (i < 4 ? 0 : 8)};
}
Place of_b16(int lane, int i) { return {lane % 4 * 2 + i % 2 + (i < 2 ? 0 : 8), lane / 4}; }
Place of_c(int lane, int i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + i % 2}; }
// m16n8k8, tf32: a0 … a3 of 16 x 8, b0 and b1 of 8 x 8.
Place of_a_tf32(int lane, int i) { return {lane / 4 + (i % 2 == 0 ? 0 : 8), lane % 4 + (i < 2 ? 0 : 4)}; }
Place of_b_tf32(int lane, int i) { return {lane % 4 + (i == 0 ? 0 : 4), lane / 4}; }

TEST(LoadMatrices, MatchesTheLayout) {
  in_all_schedules([] {
    for (const int count : {1, 2, 4})
      for (const bool transposed : {false, true}) {
        const std::vector<std::uint16_t> matrices = random<std::uint16_t>(256, 15, 0, 65535);
        Buffer<std::uint16_t> input(matrices);
        auto registers = Buffer<std::uint32_t>::output(static_cast<std::size_t>(32 * count));
        cases::load_matrices(count, transposed, input.data(), registers.data(), nullptr);
        const std::vector<std::uint32_t> got = registers.values();
        for (int lane = 0; lane < 32; ++lane)
          for (int m = 0; m < count; ++m)
            for (int i = 0; i < 2; ++i) {
              Place at = of_matrix(lane, i);
              if (transposed) std::swap(at.row, at.column);
              ASSERT_EQ(got[lane * count + m] >> 16 * i & 0xFFFFU, matrices[m * 64 + at.row * 8 + at.column])
                  << count << " " << transposed << " lane " << lane << " matrix " << m;
            }
      }
  });
}

struct Format {
  cases::Product product;
  int k;             // of a product
  int per_register;  // numbers
  unsigned bits;     // of a number
  Place (*a)(int, int);
  Place (*b)(int, int);
  double (*value)(std::uint32_t);  // of a number's bits
};

double half_value(std::uint32_t bits) {
  return static_cast<double>(static_cast<float>(std::bit_cast<Half>(static_cast<std::uint16_t>(bits))));
}
double bf16_value(std::uint32_t bits) {
  return static_cast<double>(static_cast<float>(std::bit_cast<BFloat16>(static_cast<std::uint16_t>(bits))));
}
double tf32_value(std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); }

const Format formats[] = {{cases::Product::f16, 16, 2, 16, of_a16, of_b16, half_value},
                          {cases::Product::bf16, 16, 2, 16, of_a16, of_b16, bf16_value},
                          {cases::Product::tf32, 8, 1, 32, of_a_tf32, of_b_tf32, tf32_value}};

// Fresh numbers of about 1 in the format.
std::uint32_t fresh(const Format& format, std::mt19937& random) {
  const std::uint32_t r = static_cast<std::uint32_t>(random());
  switch (format.product) {
    case cases::Product::f16: return (r & 0x8000U) | (14U + (r >> 20 & 1U)) << 10 | (r & 0x3FFU);
    case cases::Product::bf16: return (r & 0x8000U) | (126U + (r >> 20 & 1U)) << 7 | (r & 0x7FU);
    default: return (r & 0x80000000U) | (126U + (r >> 20 & 1U)) << 23 | (r & 0x3FFU) << 13;
  }
}

TEST(Multiply, MatchesTheLayout) {
  in_all_schedules([] {
    for (const Format& format : formats) {
      std::mt19937 generator(16);
      const int k = format.k;
      std::vector<std::uint32_t> a(16 * k), b(k * 8);
      for (auto& v : a) v = fresh(format, generator);
      for (auto& v : b) v = fresh(format, generator);
      const std::vector<float> c = random<float>(16 * 8, 17);

      std::vector<std::uint32_t> a_registers(32 * 4), b_registers(32 * 2);
      std::vector<float> c_registers(32 * 4);
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4 * format.per_register; ++i) {
          const Place at = format.a(lane, i);
          a_registers[lane * 4 + i / format.per_register] |= a[at.row * k + at.column]
                                                             << i % format.per_register * format.bits;
        }
        for (int i = 0; i < 2 * format.per_register; ++i) {
          const Place at = format.b(lane, i);
          b_registers[lane * 2 + i / format.per_register] |= b[at.row * 8 + at.column]
                                                             << i % format.per_register * format.bits;
        }
        for (int i = 0; i < 4; ++i) {
          const Place at = of_c(lane, i);
          c_registers[lane * 4 + i] = c[at.row * 8 + at.column];
        }
      }
      Buffer<std::uint32_t> a_input(a_registers), b_input(b_registers);
      Buffer<float> d(c_registers);
      cases::multiply(format.product, a_input.data(), b_input.data(), d.data(), nullptr);

      const std::vector<float> got = d.values();
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
          const Place at = of_c(lane, i);
          double wanted = static_cast<double>(c[at.row * 8 + at.column]);
          for (int j = 0; j < k; ++j)
            wanted += format.value(a[at.row * k + j]) * format.value(b[j * 8 + at.column]);
          ASSERT_NEAR(got[lane * 4 + i], wanted, 1e-4) << k << " lane " << lane << " number " << i;
        }
    }
  });
}

}  // namespace
}  // namespace gyre::simt
