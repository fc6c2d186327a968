#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/random.h"
#include "core/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gyre {
namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::string file_of(const std::string& header, std::size_t data = 0) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(data, 'x');
}

/// Good files of every kind, and bad ones from which the fuzzer can find its way.
std::vector<std::string> seeds() {
  std::vector<std::string> all;
  TensorMap tensors;
  for (const DType dtype : {DType::u8, DType::bf16, DType::f16, DType::f32, DType::i64, DType::f64}) {
    tensors[fmt::format("blocks.0.{}", dtype)] = Tensor::zeros({2, 1, 3}, dtype);
    all.push_back(encode_safetensors({{"a", Tensor::zeros({4}, dtype)}}));
  }
  tensors["scalar"] = Tensor::full({}, 2.5);
  tensors["empty"] = Tensor::empty({0, 7}, DType::f64);
  all.push_back(encode_safetensors(tensors, {{"format", "pt"}, {"\xc3\xa4 \"quoted\"", "\n\x01"}}));
  all.push_back(encode_safetensors({}, {{"k", ""}}));
  all.push_back(file_of("{}"));
  all.push_back(file_of("{}", 3));
  all.push_back(file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                        R"("b":{"shape":[4],"data_offsets":[2,6],"dtype":"U8"}})",
                        8));
  all.push_back(file_of(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"));
  all.push_back(file_of("{\"a\":" + std::string(200, '[')));
  return all;
}

TEST(FuzzSafetensors, SurvivesItsSeedsAndTheirNeighbours) {
  const char* folder = std::getenv("GYRE_FUZZ_SEEDS");  // scripts/fuzz.sh begins with them
  int number = 0;
  for (const std::string& seed : seeds()) {
    run(seed);
    if (folder) {
      std::filesystem::create_directories(folder);
      write_file(std::filesystem::path(folder) / fmt::format("seed-{:02}", number), seed);
    }
    RandomStream stream(7, Purpose::test, static_cast<std::uint64_t>(number++));
    for (int round = 0; round < 300; ++round) {
      std::string bytes = seed;
      for (std::uint64_t changes = 1 + stream.below(4); changes > 0 && !bytes.empty(); --changes) {
        const auto at = static_cast<std::size_t>(stream.below(bytes.size()));
        switch (stream.below(4)) {
          case 0: bytes[at] = static_cast<char>(stream.bits()); break;
          case 1: bytes.erase(at, 1 + stream.below(8)); break;
          case 2: bytes.insert(at, bytes.substr(stream.below(bytes.size()), stream.below(16))); break;
          default: bytes.resize(at); break;
        }
      }
      run(bytes);
    }
  }
}

}  // namespace
}  // namespace gyre
