#include "train/parse.h"

namespace gyre {

bool parse_bool(std::string_view text) {
  std::string word(text);
  for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  throw ValueError(fmt::format("'{}' is not true or false", text));
}

}  // namespace gyre
