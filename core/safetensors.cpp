#include "core/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/safetensors_header.h"

namespace gyre {

namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and copied as it is");

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t most_header_bytes = 100'000'000;

std::uint64_t byte_size(const Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
}

// The entries must fill the data without overlap or gap, so that no byte is unaccounted for.
void check_layout(std::vector<SafetensorsEntry>& entries, std::uint64_t available, const std::string& path) {
  std::stable_sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t used = 0;
  const SafetensorsEntry* previous = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin < used)
      throw FileError(fmt::format("{}: tensor {} begins at byte {}, it overlaps tensor {}, which ends at {}",
                                  path, quoted_name(entry.name), entry.begin, quoted_name(previous->name),
                                  used));
    if (entry.begin > used)
      throw FileError(fmt::format("{}: tensor {} begins at byte {}, a gap after byte {}", path,
                                  quoted_name(entry.name), entry.begin, used));
    used = entry.end;
    previous = &entry;
  }
  require<FileError>(used <= available, "{}: truncated: header says {} bytes of data, file has {}", path,
                     used, available);
  require<FileError>(used == available, "{}: header says {} bytes of data, file has {}", path, used,
                     available);
}

/// `read(offset, target, bytes)` copies from a file of `size` bytes.
template <class Read>
SafetensorsFile read_from(const std::string& name, std::uint64_t size, Read&& read) {
  require<FileError>(size >= length_bytes, "{}: truncated: {} bytes, the header length alone takes {}", name,
                     size, length_bytes);
  std::uint64_t header_bytes = 0;
  read(0, &header_bytes, length_bytes);
  require<FileError>(header_bytes <= most_header_bytes, "{}: header of {} bytes, at most {} are allowed",
                     name, header_bytes, most_header_bytes);
  const std::uint64_t rest = size - length_bytes;
  require<FileError>(header_bytes <= rest, "{}: truncated: header takes {} bytes, file has {}", name,
                     header_bytes, rest);
  std::string text(header_bytes, '\0');
  read(length_bytes, text.data(), text.size());
  SafetensorsHeader header = parse_safetensors_header(text, name);
  check_layout(header.entries, rest - header_bytes, name);

  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  const std::uint64_t data = length_bytes + header_bytes;
  for (SafetensorsEntry& entry : header.entries) {
    Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
    if (entry.end > entry.begin) read(data + entry.begin, tensor.raw_mutable_data(), entry.end - entry.begin);
    file.tensors.emplace(std::move(entry.name), std::move(tensor));
  }
  return file;
}

std::vector<std::pair<std::string, Tensor>> in_file_order(const TensorMap& tensors) {
  std::vector<std::pair<std::string, Tensor>> order;
  for (const auto& [name, tensor] : tensors) {
    require<ValueError>(name != "__metadata__", "a tensor cannot be named \"__metadata__\"");
    require<ValueError>(tensor.defined(), "tensor {} is undefined", quoted_name(name));
    order.emplace_back(name, tensor.to(Device::cpu()).contiguous());
  }
  // Wide types first: every tensor then begins at a multiple of its element size.
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  return order;
}

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  return read_from(path.string(), file.size(), [&](std::uint64_t offset, void* target, std::size_t bytes) {
    file.read_at(offset, target, bytes);
  });
}

SafetensorsFile decode_safetensors(std::string_view bytes, const std::string& name) {
  return read_from(name, bytes.size(), [&](std::uint64_t offset, void* target, std::size_t count) {
    if (count > 0) std::memcpy(target, bytes.data() + offset, count);
  });
}

std::string encode_safetensors(const TensorMap& tensors, const Metadata& metadata) {
  const auto order = in_file_order(tensors);
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : order) {
    const std::uint64_t begin = end;
    end += byte_size(tensor);
    json[name] = {{"dtype", safetensors_type(tensor.dtype())},
                  {"shape", std::span(tensor.shape().begin(), tensor.shape().end())},
                  {"data_offsets", {begin, end}}};
  }
  std::string header;
  try {
    header = json.dump();
  } catch (const nlohmann::json::type_error&) {
    throw ValueError("names and metadata of a safetensors file must be UTF-8");
  }
  header.resize((header.size() + 7) / 8 * 8, ' ');
  require<ValueError>(header.size() <= most_header_bytes,
                      "safetensors header of {} bytes, at most {} are allowed", header.size(),
                      most_header_bytes);

  const std::uint64_t header_bytes = header.size();
  std::string bytes(length_bytes, '\0');
  std::memcpy(bytes.data(), &header_bytes, length_bytes);
  bytes.reserve(length_bytes + header.size() + end);
  bytes += header;
  for (const auto& [name, tensor] : order)
    if (tensor.numel() > 0) bytes.append(static_cast<const char*>(tensor.raw_data()), byte_size(tensor));
  return bytes;
}

void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const Metadata& metadata) {
  write_file(path, encode_safetensors(tensors, metadata));
}

}  // namespace gyre
