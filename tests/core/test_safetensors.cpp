#include "core/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "core/random.h"

namespace gyre {
namespace {

std::string with_length(std::string_view header, std::string_view data, std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(data);
}

std::string file_of(std::string_view header, std::string_view data = "") {
  return with_length(header, data, header.size());
}

class Safetensors : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path() const { return folder_ / "model.safetensors"; }

  // From the file and from memory, which agree.
  SafetensorsFile read(std::string_view bytes) const {
    write_file(path(), bytes);
    std::string in_memory;
    try {
      decode_safetensors(bytes, path().string());
    } catch (const FileError& error) {
      in_memory = error.what();
    }
    try {
      SafetensorsFile file = read_safetensors(path());
      EXPECT_EQ(in_memory, "");
      return file;
    } catch (const FileError& error) {
      EXPECT_EQ(in_memory, error.what());
      throw;
    }
  }

  // The error without the folder in front.
  std::string refusal(std::string_view bytes) const {
    try {
      read(bytes);
    } catch (const FileError& error) {
      const std::string text = error.what(), front = folder_.string() + "/";
      EXPECT_TRUE(text.starts_with(front)) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos);
      return text.substr(front.size());
    }
    return "no error";
  }

  // The error for one tensor "a" with this description and `bytes` of data.
  std::string entry_refusal(std::string_view description, std::size_t bytes = 0) const {
    return refusal(file_of(fmt::format("{{\"a\":{}}}", description), std::string(bytes, 'x')));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("gyre-{}-{}", ::getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
};

bool same_bytes(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<std::size_t>(a.numel()) * size_of(a.dtype());
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (bytes == 0 || std::memcmp(a.raw_data(), b.raw_data(), bytes) == 0);
}

TensorMap sample_tensors() {
  TensorMap tensors;
  std::uint8_t value = 1;
  for (const DType dtype : {DType::u8, DType::bf16, DType::f16, DType::f32, DType::i64, DType::f64}) {
    Tensor tensor = Tensor::empty({3, 1, 5}, dtype);
    auto* bytes = static_cast<std::uint8_t*>(tensor.raw_mutable_data());
    for (std::size_t i = 0; i < 15 * size_of(dtype); ++i)
      bytes[i] = value = static_cast<std::uint8_t>(value * 7 + 3);
    tensors.emplace(fmt::format("layer.{}", dtype), tensor);
  }
  tensors.emplace("scalar", Tensor::full({}, 2.5));
  tensors.emplace("empty", Tensor::empty({0, 7}, DType::f64));
  return tensors;
}

TEST_F(Safetensors, RoundTripsEveryType) {
  const TensorMap tensors = sample_tensors();
  const Metadata metadata = {{"group", "c4"}, {"text", "ä \"quoted\"\n\\ \x01 line"}, {"", ""}};
  write_safetensors(path(), tensors, metadata);
  const SafetensorsFile file = read_safetensors(path());
  EXPECT_EQ(file.metadata, metadata);
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(same_bytes(tensor, file.tensors.at(name))) << name;
  EXPECT_EQ(file.tensors.at("scalar").item(), 2.5);
}

TEST_F(Safetensors, ReadsWhatItWroteIntoOwnMemory) {
  write_safetensors(path(), {{"a", Tensor::full({2}, 3)}});
  SafetensorsFile file = read_safetensors(path());
  file.tensors.at("a").fill_(4);
  EXPECT_EQ(read_safetensors(path()).tensors.at("a").to_vector(), (std::vector<double>{3, 3}));
}

TEST_F(Safetensors, WritesExactlyTheFormat) {
  const TensorMap tensors = {{"b", Tensor::from<float>({1.0F}, {1})},
                             {"a", Tensor::from<std::uint8_t>({7, 8, 9}, {3})}};
  std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})";
  while (header.size() % 8 != 0) header += ' ';
  EXPECT_EQ(encode_safetensors(tensors, {{"k", "v"}}),
            file_of(header, std::string("\x00\x00\x80\x3f\x07\x08\x09", 7)));
}

TEST_F(Safetensors, BytesAreAPureFunctionOfTheArguments) {
  write_safetensors(path(), sample_tensors(), {{"b", "1"}, {"a", "2"}});
  const std::string first = read_file(path());
  write_safetensors(path(), sample_tensors(), {{"a", "2"}, {"b", "1"}});
  EXPECT_EQ(read_file(path()), first);
  const SafetensorsFile file = read_safetensors(path());
  EXPECT_EQ(encode_safetensors(file.tensors, file.metadata), first);
}

TEST_F(Safetensors, AlignsHeaderAndTensors) {
  const std::string bytes = encode_safetensors(sample_tensors());
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  const std::string text = bytes.substr(8, header);
  for (const std::string_view type : {"F64", "I64", "F32"}) {
    const std::size_t at = text.find(fmt::format("\"dtype\":\"{}\"", type));
    const std::size_t offset = text.find("\"data_offsets\":[", at) + 16;
    std::uint64_t begin = 1;
    std::from_chars(text.data() + offset, text.data() + text.size(), begin);
    EXPECT_EQ(begin % (type == "F32" ? 4 : 8), 0u) << type;
  }
}

TEST_F(Safetensors, WritesStridedTensorsDensely) {
  RandomStream stream(1, Purpose::test);
  const Tensor base = random_normal({4, 6}, 1, stream);
  const TensorMap views = {{"transposed", base.transpose(0, 1)},
                           {"sliced", base.slice(1, 1, 6, 2)},
                           {"expanded", base.slice(0, 2, 3).expand({3, 6})}};
  write_safetensors(path(), views);
  const SafetensorsFile file = read_safetensors(path());
  for (const auto& [name, view] : views) {
    EXPECT_EQ(file.tensors.at(name).shape(), view.shape());
    EXPECT_EQ(file.tensors.at(name).to_vector(), view.to_vector()) << name;
  }
}

TEST_F(Safetensors, ReadsFilesOfOtherWriters) {
  // Any key order, white space, data in another order than the names, no metadata.
  const SafetensorsFile file =
      read(file_of("{ \"b\" : {\"shape\":[2],\"data_offsets\":[1,3],\"dtype\":\"U8\"},\n"
                   "\"a\":{\"data_offsets\":[0,1],\"dtype\":\"U8\",\"shape\":[]}}   ",
                   "xyz"));
  EXPECT_EQ(file.tensors.at("a").item(), 'x');
  EXPECT_EQ(file.tensors.at("b").to_vector(), (std::vector<double>{'y', 'z'}));
  EXPECT_TRUE(read(file_of("{}")).tensors.empty());
}

TEST_F(Safetensors, RefusesTruncation) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[123456],"data_offsets":[0,123456]}})";
  EXPECT_EQ(refusal(file_of(header, std::string(1000, 'x'))),
            "model.safetensors: truncated: header says 123456 bytes of data, file has 1000");
  EXPECT_EQ(refusal(""), "model.safetensors: truncated: 0 bytes, the header length alone takes 8");
  EXPECT_EQ(refusal("1234567"), "model.safetensors: truncated: 7 bytes, the header length alone takes 8");
  EXPECT_EQ(refusal(with_length("{}", "", 50)),
            "model.safetensors: truncated: header takes 50 bytes, file has 2");
  // Every proper prefix of a good file is refused.
  const std::string whole = encode_safetensors({{"a", Tensor::ones({2})}}, {{"k", "v"}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)).find("truncated"), std::string::npos) << size;
}

TEST_F(Safetensors, RefusesBadLengths) {
  EXPECT_EQ(refusal(with_length("{}", "", 100'000'001)),
            "model.safetensors: header of 100000001 bytes, at most 100000000 are allowed");
  EXPECT_EQ(refusal(with_length("{}", "", std::numeric_limits<std::uint64_t>::max())),
            "model.safetensors: header of 18446744073709551615 bytes, at most 100000000 are allowed");
  EXPECT_EQ(refusal(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xyz")),
            "model.safetensors: header says 2 bytes of data, file has 3");
  EXPECT_EQ(refusal(file_of("{}", "x")), "model.safetensors: header says 0 bytes of data, file has 1");
}

TEST_F(Safetensors, RefusesOverlapsAndGaps) {
  const auto two = [&](int begin, int end) {
    return refusal(file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},)"
                                       R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                                       end - begin, begin, end),
                           "12345678"));
  };
  EXPECT_EQ(two(4, 8), "no error");
  const std::string overlap = ", it overlaps tensor \"a\", which ends at 4";
  EXPECT_EQ(two(3, 8), "model.safetensors: tensor \"b\" begins at byte 3" + overlap);
  EXPECT_EQ(two(0, 8), "model.safetensors: tensor \"b\" begins at byte 0" + overlap);
  EXPECT_EQ(two(5, 8), "model.safetensors: tensor \"b\" begins at byte 5, a gap after byte 4");
  EXPECT_EQ(two(4, 9), "model.safetensors: truncated: header says 9 bytes of data, file has 8");
  EXPECT_EQ(two(4, 4), "model.safetensors: header says 4 bytes of data, file has 8");
}

TEST_F(Safetensors, RefusesDuplicates) {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(refusal(file_of(fmt::format(R"({{"a":{0},"b":{0},"a":{0}}})", entry))),
            "model.safetensors: tensor \"a\" appears twice");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]})"),
            "model.safetensors: tensor \"a\": key \"dtype\" appears twice");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":{"k":"1","k":"2"}})")),
            "model.safetensors: __metadata__: key \"k\" appears twice");
}

TEST_F(Safetensors, RefusesBadEntries) {
  const std::string front = "model.safetensors: tensor \"a\": ";
  EXPECT_EQ(entry_refusal(R"({"dtype":"F8","shape":[1],"data_offsets":[0,1]})", 1),
            front + "unknown type \"F8\", expected F64, F32, F16, BF16, I64 or U8");
  EXPECT_EQ(entry_refusal(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,20]})", 20),
            front + "F32 of shape [2, 3] takes 24 bytes, data_offsets span 20");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})", 1),
            front + "data_offsets [1, 0] run backwards");
  EXPECT_EQ(entry_refusal(R"({"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
            front + "shape [4294967296, 4294967296] is too large");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})"),
            front + "shape [0, 4294967296, 4294967296] is too large");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]})", 1),
            front + "extent 9223372036854775808 is too large");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})", 1),
            front + "more than 8 dimensions");
  EXPECT_EQ(entry_refusal(R"({"shape":[1],"data_offsets":[0,1]})", 1), front + "no dtype");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","data_offsets":[0,1]})", 1), front + "no shape");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[1]})", 1), front + "no pair of data_offsets");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", 1),
            front + "no pair of data_offsets");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})", 1),
            front + "data_offsets is not a pair");
  EXPECT_EQ(entry_refusal(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1})", 1),
            front + "unknown key \"extra\"");
}

TEST_F(Safetensors, RefusesValuesOfTheWrongKind) {
  const std::string front = "model.safetensors: tensor \"a\": unexpected ";
  EXPECT_EQ(entry_refusal("5"), front + "number");
  EXPECT_EQ(entry_refusal("[]"), front + "array");
  EXPECT_EQ(entry_refusal("null"), front + "null");
  EXPECT_EQ(entry_refusal(R"({"dtype":1})"), front + "number at key \"dtype\"");
  EXPECT_EQ(entry_refusal(R"({"dtype":{}})"), front + "object at key \"dtype\"");
  EXPECT_EQ(entry_refusal(R"({"shape":"x"})"), front + "string at key \"shape\"");
  EXPECT_EQ(entry_refusal(R"({"shape":[-1]})"), front + "negative number at key \"shape\"");
  EXPECT_EQ(entry_refusal(R"({"shape":[1.0]})"), front + "fraction at key \"shape\"");
  EXPECT_EQ(entry_refusal(R"({"shape":[true]})"), front + "boolean at key \"shape\"");
  EXPECT_EQ(entry_refusal(R"({"shape":[[1]]})"), front + "array at key \"shape\"");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":{"k":1}})")),
            "model.safetensors: __metadata__: unexpected number at key \"k\"");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":"k"})")),
            "model.safetensors: __metadata__: unexpected string");
  EXPECT_EQ(entry_refusal(std::string(1'000'000, '[')), front + "array");
}

TEST_F(Safetensors, RefusesTextThatIsNotAnObject) {
  const std::string front = "model.safetensors: header is not valid JSON at byte ";
  EXPECT_EQ(refusal(file_of("[1]")), front + "1");
  EXPECT_EQ(refusal(file_of("")), front + "1");
  EXPECT_EQ(refusal(file_of(" {}")), front + "1");
  EXPECT_EQ(refusal(file_of("{\"a\"}")), front + "5");
  EXPECT_EQ(refusal(file_of("{}{}")), front + "3");
  EXPECT_EQ(refusal(file_of(std::string("{}\0x", 4))), front + "3");
  EXPECT_NE(refusal(file_of("{\"\xff\":")).find("not valid JSON"), std::string::npos);
}

TEST_F(Safetensors, NamesInErrorsAreEscaped) {
  EXPECT_EQ(refusal(file_of(R"({"two\nlines":{}})")), "model.safetensors: tensor \"two\\nlines\": no dtype");
}

TEST_F(Safetensors, RefusesToWriteNonsense) {
  const auto error = [](const TensorMap& tensors, const Metadata& metadata = {}) -> std::string {
    try {
      encode_safetensors(tensors, metadata);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error({{"a", Tensor()}}), "tensor \"a\" is undefined");
  EXPECT_EQ(error({{"__metadata__", Tensor::ones({1})}}), "a tensor cannot be named \"__metadata__\"");
  EXPECT_EQ(error({{"\xff", Tensor::ones({1})}}), "names and metadata of a safetensors file must be UTF-8");
  EXPECT_EQ(error({}, {{"k", "\xc3"}}), "names and metadata of a safetensors file must be UTF-8");
}

TEST_F(Safetensors, DamageNeverPassesUnseenNorCrashes) {
  // Every byte of the header in turn replaced by others: read as another valid file, or refused in one line.
  const std::string whole =
      encode_safetensors({{"a", Tensor::ones({2, 3})}, {"b", Tensor::zeros({0, 4})}}, {{"k", "v"}});
  std::size_t refused = 0;
  for (std::size_t at = 0; at + 24 < whole.size(); ++at) {
    for (const char byte : {'\0', '\xff', '"', '{', '9', ',', static_cast<char>(whole[at] ^ 1)}) {
      std::string damaged = whole;
      damaged[at] = byte;
      try {
        const SafetensorsFile file = decode_safetensors(damaged, "f");
        EXPECT_LE(file.tensors.size(), 2u);
      } catch (const FileError& error) {
        const std::string text = error.what();
        EXPECT_TRUE(text.starts_with("f: ") && text.find('\n') == std::string::npos) << text;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, whole.size() * 3);
}

TEST_F(Safetensors, OnlyRegularFilesAreRead) {
  EXPECT_THROW(read_safetensors("/dev/zero"), FileError);
  try {
    read_safetensors(folder_);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.what(), folder_.string() + ": not a regular file");
  }
}

TEST_F(Safetensors, MissingFileIsNamed) {
  try {
    read_safetensors(folder_ / "absent.safetensors");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find("absent.safetensors"), std::string::npos);
  }
}

}  // namespace
}  // namespace gyre
