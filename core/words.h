#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gyre {

/// With a to z in place of A to Z.
std::string lower_case(std::string_view text);

/// Edits between two words: Damerau-Levenshtein distance in its optimal string alignment form.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours) to `text`, capitals aside,
/// if close enough to be meant.
template <class Candidates>
std::optional<std::string> nearest_word(std::string_view text, const Candidates& candidates) {
  std::optional<std::string> best;
  std::size_t fewest = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t edits = edit_distance(lower_case(text), lower_case(candidate));
    if (edits < fewest && edits < candidate.size()) {
      fewest = edits;
      best = std::string(candidate);
    }
  }
  return best;
}

}  // namespace gyre
