#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/safetensors.h"

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "fuzz_safetensors: {}\n", what);
  std::abort();
}

}  // namespace

/// Any bytes are refused in one line, or read as what they say and written back to the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gyre;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  SafetensorsFile file;
  try {
    file = decode_safetensors(bytes, "input");
  } catch (const FileError& error) {
    const std::string text = error.what();
    expect(text.starts_with("input: ") && text.find('\n') == std::string::npos, "an error is not one line");
    return 0;
  }
  std::size_t values = 0;
  for (const auto& [name, tensor] : file.tensors)
    values += static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
  expect(values <= size, "more data than the file has");
  const std::string again = encode_safetensors(file.tensors, file.metadata);
  const SafetensorsFile copy = decode_safetensors(again, "copy");
  expect(copy.metadata == file.metadata, "metadata changed");
  expect(encode_safetensors(copy.tensors, copy.metadata) == again, "tensors changed");
  return 0;
}
