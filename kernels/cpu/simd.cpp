#include "kernels/cpu/simd.h"

#include <hwy/targets.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"

namespace gyre::kernels::cpu {
namespace {

struct Entry {
  Simd set;
  std::string_view name;
  std::int64_t target;  // of Highway
};

constexpr std::array<Entry, 4> entries{{{Simd::portable, "portable", HWY_BASELINE_SCALAR},
                                        {Simd::neon, "neon", HWY_NEON},
                                        {Simd::avx2, "avx2", HWY_AVX2},
                                        {Simd::avx512, "avx512", HWY_AVX3}}};

std::vector<std::string_view> names_of(const std::vector<Simd>& sets) {
  std::vector<std::string_view> names;
  for (const Simd set : sets) names.push_back(name_of(set));
  return names;
}

std::vector<Simd> detect() {
  const std::int64_t supported = hwy::SupportedTargets();
  std::vector<Simd> sets{Simd::portable};
  for (const Entry& entry : entries)
    if (entry.set != Simd::portable && (supported & entry.target) != 0) sets.push_back(entry.set);
  return sets;
}

Simd choose() {
  const char* forced = std::getenv("GYRE_SIMD");
  const Simd set = forced ? parse_simd(forced) : machine_simd().back();
  hwy::SetSupportedTargetsForTest(entries[static_cast<std::size_t>(set)].target);
  return set;
}

}  // namespace

std::string_view name_of(Simd set) { return entries[static_cast<std::size_t>(set)].name; }

const std::vector<Simd>& machine_simd() {
  // Before the choice, which Highway then reports as all there is.
  static const std::vector<Simd> sets = detect();
  return sets;
}

Simd parse_simd(std::string_view name) {
  const std::vector<Simd>& sets = machine_simd();
  for (const Simd set : sets)
    if (name == name_of(set)) return set;
  for (const Entry& entry : entries)
    require<DeviceError>(name != entry.name, "GYRE_SIMD={}: this machine has only {}", name,
                         fmt::join(names_of(sets), ", "));
  throw ValueError(
      fmt::format("GYRE_SIMD: '{}' is not one of portable, neon, avx2, avx512 (this machine has {})", name,
                  fmt::join(names_of(sets), ", ")));
}

Simd simd() {
  static const Simd set = choose();
  return set;
}

}  // namespace gyre::kernels::cpu
