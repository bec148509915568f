// "did you mean": the nearest known name to a misspelt one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tbdsim {

// Number of single-character insertions, deletions, substitutions and swaps of neighbours between two names.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'titanxp'?" for the nearest of `known` within a third of the name's length (at least 1,
// ties to the first); "" when nothing is near.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> known);

// The text in single quotes, for messages: at most `longest` characters, control characters as '?'.
inline constexpr std::size_t kLongestQuote = 40;
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t longest = kLongestQuote);

// The same of a key's path, which is never cut.
[[nodiscard]] inline std::string key_in_quotes(std::string_view path) { return in_quotes(path, path.size()); }

// "a, b, c" for messages.
[[nodiscard]] std::string joined(std::span<const std::string> names);

}  // namespace tbdsim
