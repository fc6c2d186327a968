#include "core/safetensors_header.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"

namespace gyre {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, DType>, 6> types = {{{"F64", DType::f64},
                                                                      {"F32", DType::f32},
                                                                      {"F16", DType::f16},
                                                                      {"BF16", DType::bf16},
                                                                      {"I64", DType::i64},
                                                                      {"U8", DType::u8}}};

constexpr auto most_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
constexpr std::string_view metadata_key = "__metadata__";

// Streams the header into entries without a document tree, so that no hostile text grows in memory.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { fail_value("null"); }
  bool boolean(bool) override { fail_value("boolean"); }
  bool number_integer(number_integer_t) override { fail_value("negative number"); }
  bool number_float(number_float_t, const string_t&) override { fail_value("fraction"); }
  bool binary(binary_t&) override { fail_value("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (where_ == Where::shape) {
      check(value <= most_bytes, "extent {} is too large", value);
      check(shape_->rank() < Shape::max_rank, "more than {} dimensions", Shape::max_rank);
      shape_->push_back(static_cast<std::int64_t>(value));
    } else if (where_ == Where::offsets) {
      check(offsets_->size() < 2, "data_offsets is not a pair");
      offsets_->push_back(value);
    } else {
      fail_value("number");
    }
    return true;
  }

  bool string(string_t& value) override {
    if (where_ == Where::metadata) {
      header_.metadata[key_] = value;
    } else if (where_ == Where::entry && key_ == "dtype") {
      for (const auto& [name, dtype] : types)
        if (name == value) dtype_ = dtype;
      check(dtype_.has_value(), "unknown type {}, expected F64, F32, F16, BF16, I64 or U8",
            quoted_name(value));
    } else {
      fail_value("string");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::outside) {
      where_ = Where::root;
    } else if (where_ == Where::root) {
      where_ = key_ == metadata_key ? Where::metadata : Where::entry;
    } else {
      fail_value("object");
    }
    keys_.clear();
    return true;
  }

  bool key(string_t& key) override {
    if (where_ == Where::root) {
      require<FileError>(names_.insert(key).second, "{}: tensor {} appears twice", path_, quoted_name(key));
      name_ = key;
      in_entry_ = key != metadata_key;
    } else {
      check(keys_.insert(key).second, "key {} appears twice", quoted_name(key));
      check(where_ == Where::metadata || key == "dtype" || key == "shape" || key == "data_offsets",
            "unknown key {}", quoted_name(key));
    }
    key_ = key;
    return true;
  }

  bool end_object() override {
    if (where_ == Where::entry) add_entry();
    where_ = where_ == Where::root ? Where::outside : Where::root;
    in_entry_ = false;
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ == Where::entry && key_ == "shape") {
      where_ = Where::shape;
      shape_.emplace();
    } else if (where_ == Where::entry && key_ == "data_offsets") {
      where_ = Where::offsets;
      offsets_.emplace();
    } else {
      fail_value("array");
    }
    return true;
  }

  bool end_array() override {
    where_ = Where::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw FileError(fmt::format("{}: header is not valid JSON at byte {}", path_, position));
  }

 private:
  enum class Where { outside, root, metadata, entry, shape, offsets };

  // Throws with file and tensor named.
  template <class... Args>
  void check(bool condition, fmt::format_string<Args...> text, Args&&... args) const {
    if (!condition) fail(fmt::format(text, std::forward<Args>(args)...));
  }

  [[noreturn]] void fail(const std::string& text) const {
    const std::string subject = in_entry_ ? "tensor " + quoted_name(name_) : name_.empty() ? "header" : name_;
    throw FileError(fmt::format("{}: {}: {}", path_, subject, text));
  }

  [[noreturn]] void fail_value(std::string_view kind) const {
    const bool inner = where_ != Where::outside && where_ != Where::root;
    fail(fmt::format("unexpected {}{}", kind, inner && !key_.empty() ? " at key " + quoted_name(key_) : ""));
  }

  void add_entry() {
    check(dtype_.has_value(), "no dtype");
    check(shape_.has_value(), "no shape");
    check(offsets_.has_value() && offsets_->size() == 2, "no pair of data_offsets");
    const std::uint64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    check(begin <= end, "data_offsets [{}, {}] run backwards", begin, end);
    const std::uint64_t bytes = byte_size();
    check(bytes == end - begin, "{} of shape {} takes {} bytes, data_offsets span {}",
          safetensors_type(*dtype_), shape_->str(), bytes, end - begin);
    header_.entries.push_back({name_, *dtype_, *shape_, begin, end});
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
  }

  // Of the current entry; refuses products that overflow, even where another extent is 0.
  std::uint64_t byte_size() const {
    std::uint64_t bytes = size_of(*dtype_);
    bool empty = false;
    for (const std::int64_t extent : *shape_) {
      empty = empty || extent == 0;
      const std::uint64_t factor = extent == 0 ? 1 : static_cast<std::uint64_t>(extent);
      check(bytes <= most_bytes / factor, "shape {} is too large", shape_->str());
      bytes *= factor;
    }
    return empty ? 0 : bytes;
  }

  const std::string& path_;
  SafetensorsHeader header_;
  Where where_ = Where::outside;
  std::string name_, key_;  // the current key of the root and of the innermost object
  bool in_entry_ = false;
  std::set<std::string> names_, keys_;
  std::optional<DType> dtype_;
  std::optional<Shape> shape_;
  std::optional<std::vector<std::uint64_t>> offsets_;
};

}  // namespace

std::string quoted_name(const std::string& name) {
  return Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string_view safetensors_type(DType dtype) {
  for (const auto& [name, type] : types)
    if (type == dtype) return name;
  throw DTypeError(fmt::format("safetensors has no name for {}", dtype));
}

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& path) {
  // The parser would take a zero byte for the end of the text.
  const std::size_t zero = text.find('\0');
  require<FileError>(text.starts_with('{') && zero == std::string_view::npos,
                     "{}: header is not valid JSON at byte {}", path, text.starts_with('{') ? zero + 1 : 1);
  HeaderReader reader(path);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace gyre
