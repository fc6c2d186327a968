#include "core/dtype.h"

namespace gyre {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::u8: return 1;
  }
  throw DTypeError(fmt::format("no data type has the number {}", static_cast<int>(dtype)));
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
  }
  throw DTypeError(fmt::format("no data type has the number {}", static_cast<int>(dtype)));
}

DType parse_dtype(std::string_view name) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::u8}) {
    if (name == name_of(dtype)) return dtype;
  }
  throw DTypeError(fmt::format("data type '{}': expected f64, f32, f16, bf16, i64 or u8", name));
}

bool is_floating(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace gyre
