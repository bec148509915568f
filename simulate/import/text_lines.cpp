#include "simulate/import/text_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

namespace tbdsim {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kBlanks = " \t\r\f\v";

// Without "ESC [ ... letter".
std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != kEscape) {
      plain += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() && (line[i + 1] == ';' || (line[i + 1] >= '0' && line[i + 1] <= '9'))) ++i;
    ++i;  // the letter
  }
  return plain;
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(without_escapes(line));
    at = end + 1;
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::optional<double> leading_number(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '(') text = trimmed(text.substr(1));
  double number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  (void)end;
  return wrong == std::errc{} && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

void fail_at(const std::string& file, int line, const std::string& what) {
  throw SpecError(
      {.file = std::make_shared<const std::string>(file), .line = line, .column = line > 0 ? 1 : 0}, what);
}

}  // namespace tbdsim
