#include "data/transform.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data/image.h"

namespace gyre {

namespace {

constexpr std::string_view fit_rule = "central_square";

std::string join(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  return text;
}

template <class T>
T parse(std::string_view key, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<ValueError>(error == std::errc() && end == text.data() + text.size(),
                      "preprocessing {}: \"{}\" is no number", key, text);
  return value;
}

std::vector<double> parse_list(std::string_view key, std::string_view text) {
  std::vector<double> values;
  for (;;) {
    const std::size_t comma = text.find(',');
    values.push_back(parse<double>(key, text.substr(0, comma)));
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

void Preprocessing::check() const {
  require<ValueError>(channels == 1 || channels == 3, "preprocessing has {} channels; allowed are 1 and 3",
                      channels);
  require<ValueError>(native_size >= 1 && size >= native_size && (size - native_size) % 2 == 0,
                      "images of side {} cannot be padded evenly to {}", native_size, size);
  for (const auto& [key, values] : {std::pair("mean", &mean), std::pair("std", &std)}) {
    require<ValueError>(values->size() == static_cast<std::size_t>(channels),
                        "{}: {} values, images have {} channel{}", key, values->size(), channels,
                        channels == 1 ? "" : "s");
    for (const double value : *values)
      require<ValueError>(std::isfinite(value) && (key[0] == 'm' || value > 0),
                          "{}: {}; a {} number is needed", key, value, key[0] == 'm' ? "finite" : "positive");
  }
}

std::map<std::string, std::string> Preprocessing::to_map() const {
  return {{"channels", fmt::format("{}", channels)},
          {"fit", std::string(fit_rule)},
          {"mean", join(mean)},
          {"native_size", fmt::format("{}", native_size)},
          {"size", fmt::format("{}", size)},
          {"std", join(std)}};
}

Preprocessing Preprocessing::from_map(const std::map<std::string, std::string>& values) {
  Preprocessing result;
  for (const auto& [key, unused] : result.to_map())
    require<ValueError>(values.contains(key), "preprocessing lacks {}", key);
  for (const auto& [key, text] : values) {
    if (key == "channels")
      result.channels = parse<int>(key, text);
    else if (key == "native_size")
      result.native_size = parse<int>(key, text);
    else if (key == "size")
      result.size = parse<int>(key, text);
    else if (key == "mean")
      result.mean = parse_list(key, text);
    else if (key == "std")
      result.std = parse_list(key, text);
    else if (key == "fit")
      require<ValueError>(text == fit_rule, "preprocessing fit \"{}\"; only {} is known", text, fit_rule);
    else
      throw ValueError(fmt::format("preprocessing has an unknown key {}", key));
  }
  result.check();
  return result;
}

Placement draw_placement(const AugmentConfig& config, RandomStream& stream) {
  const int shifts = 2 * config.crop_padding + 1;
  Placement placement;
  placement.dx = static_cast<int>(stream.uniform() * shifts) - config.crop_padding;
  placement.dy = static_cast<int>(stream.uniform() * shifts) - config.crop_padding;
  const bool mirrored = stream.uniform() < 0.5;
  const int turns = static_cast<int>(stream.uniform() * 4);
  placement.flip = config.flip && mirrored;
  placement.quarter_turns = config.quarter_turns ? turns : 0;
  return placement;
}

Pipeline::Pipeline(Preprocessing preprocessing) : Pipeline(std::move(preprocessing), AugmentConfig{}) {}

Pipeline::Pipeline(Preprocessing preprocessing, AugmentConfig augment)
    : preprocessing_(std::move(preprocessing)), augment_(augment) {
  preprocessing_.check();
  require<ValueError>(augment_.crop_padding >= 0 && augment_.crop_padding < preprocessing_.size,
                      "data.augment.crop_padding: {}; allowed are 0 to {}", augment_.crop_padding,
                      preprocessing_.size - 1);
  normalised_.resize(static_cast<std::size_t>(preprocessing_.channels));
  for (std::size_t c = 0; c < normalised_.size(); ++c)
    for (std::size_t v = 0; v < 256; ++v)
      normalised_[c][v] =
          static_cast<float>((static_cast<double>(v) / 255 - preprocessing_.mean[c]) / preprocessing_.std[c]);
}

bool Pipeline::augments() const {
  return augment_.crop_padding > 0 || augment_.flip || augment_.quarter_turns;
}

std::int64_t Pipeline::slot_size() const {
  return std::int64_t{preprocessing_.channels} * preprocessing_.size * preprocessing_.size;
}

void Pipeline::operator()(const Tensor& image, RandomStream& stream, std::span<float> slot) const {
  place(image, augments() ? draw_placement(augment_, stream) : Placement{}, slot);
}

void Pipeline::place(const Tensor& image, const Placement& placement, std::span<float> slot) const {
  const std::int64_t channels = preprocessing_.channels, native = preprocessing_.native_size,
                     size = preprocessing_.size;
  require<ShapeError>(static_cast<std::int64_t>(slot.size()) == slot_size(),
                      "a slot of {} values for {} x {} x {}", slot.size(), channels, size, size);
  const bool ready =
      image.dtype() == DType::u8 && image.shape() == Shape{channels, native, native} && image.is_contiguous();
  if (!ready)
    return place(fit_square(channels == 1 ? to_grey(image) : to_rgb(image), native), placement, slot);

  // Where canvas pixel (y, x) goes: start + y * down + x * right.
  std::int64_t start = 0, down = size, right = 1;
  switch (placement.quarter_turns & 3) {
    case 1: start = (size - 1) * size, down = 1, right = -size; break;
    case 2: start = size * size - 1, down = -size, right = -1; break;
    case 3: start = size - 1, down = -1, right = size; break;
    default: break;
  }
  if (placement.flip) {
    start += (size - 1) * right;
    right = -right;
  }
  const std::int64_t margin = (size - native) / 2;
  const std::int64_t left = margin + placement.dx, top = margin + placement.dy;
  const std::int64_t first = std::max<std::int64_t>(0, -left), last = std::min(native, size - left);
  const std::uint8_t* in = image.data<std::uint8_t>();
  for (std::int64_t c = 0; c < channels; ++c, in += native * native) {
    const std::array<float, 256>& value = normalised_[static_cast<std::size_t>(c)];
    float* out = slot.data() + c * size * size;
    std::fill_n(out, size * size, value[0]);
    for (std::int64_t y = std::max<std::int64_t>(0, -top); y < std::min(native, size - top); ++y) {
      float* row = out + start + (y + top) * down + left * right;
      for (std::int64_t x = first; x < last; ++x) row[x * right] = value[in[y * native + x]];
    }
  }
}

Tensor preprocess_image(const Tensor& image, const Preprocessing& preprocessing) {
  Tensor result = Tensor::empty({preprocessing.channels, preprocessing.size, preprocessing.size});
  const std::span slot(result.mutable_data<float>(), static_cast<std::size_t>(result.numel()));
  Pipeline(preprocessing).place(image, {}, slot);
  return result;
}

}  // namespace gyre
