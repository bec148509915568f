#include "hwspecs/base/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tbdsim {

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: three rows of the dynamic programme.
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitute = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

namespace {
// 'TitanXP' is near 'titanxp'.
std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}
}  // namespace

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t kLongestName = 64;  // longer ones are no typing slip, and cost quadratic time
  if (name.size() > kLongestName) return "";
  const std::string* best = nullptr;
  int best_distance = std::max(1, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestName) continue;
    const int distance = edit_distance(lower(name), lower(candidate));
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? "" : "; did you mean '" + *best + "'?";
}

std::string in_quotes(std::string_view text, std::size_t longest) {
  std::string shown;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += (byte < 0x20 || byte == 0x7f) ? '?' : c;
  }
  // Do not cut a UTF-8 character in half.
  while (text.size() > longest && !shown.empty() && (static_cast<unsigned char>(shown.back()) & 0x80) != 0) {
    shown.pop_back();
  }
  if (text.size() > longest) shown += "...";
  return "'" + shown + "'";
}

std::string joined(std::span<const std::string> names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace tbdsim
