// Reads plain JSON in one pass: texts without escapes, of printable ASCII, and numbers. Other text, and text
// that is no JSON, is left to the library, which takes six times as many instructions.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

// Whether a byte stands for itself in a text: printable ASCII but quotes and backslashes.
inline constexpr auto kPlainInText = [] {
  std::array<bool, 256> plain{};
  for (unsigned c = ' '; c < 127; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

// Calls the functions of nlohmann's json_sax on the sink.
template <class Sink>
class PlainJson {
 public:
  PlainJson(std::string_view text, Sink& sink) : at_(text.data()), end_(at_ + text.size()), sink_(sink) {}

  // False for text that is not plain, of which the sink may have seen a part.
  bool run() {
    for (;;) {
      const char first = next();
      if (first == '[' || first == '{') {
        ++at_;
        begin(first);
        if (next() == closing(first)) {
          if (!finish()) return false;
        } else {
          if (first == '{' && !key()) return false;
          continue;
        }
      } else if (!(first == '"' ? text() : scalar())) {
        return false;
      }
      while (!open_.empty() && next() == closing(open_.back())) finish();
      if (open_.empty()) return next() == '\0' && at_ == end_;
      if (next() != ',') return false;
      ++at_;
      if (open_.back() == '{' && !key()) return false;
    }
  }

 private:
  static char closing(char opening) { return opening == '[' ? ']' : '}'; }

  // The next character that is no space; 0 at the end.
  char next() {
    const auto is_space = [](char c) {
      return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
    };
    while (at_ != end_ && is_space(*at_)) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }

  void begin(char opening) {
    open_.push_back(opening);
    opening == '[' ? sink_.start_array(0) : sink_.start_object(0);
  }
  bool finish() {
    ++at_;
    const bool list = open_.back() == '[';
    open_.pop_back();
    return list ? sink_.end_array() : sink_.end_object();
  }

  // The text between quotes, behind which the reading goes on; false if it is not plain.
  bool quoted() {
    if (next() != '"') return false;
    const char* const begin = ++at_;
    while (at_ != end_ && kPlainInText[static_cast<unsigned char>(*at_)]) ++at_;
    if (at_ == end_ || *at_ != '"') return false;
    read_.assign(begin, at_++);
    return true;
  }
  bool text() { return quoted() && sink_.string(read_); }
  bool key() {
    if (!quoted() || !sink_.key(read_) || next() != ':') return false;
    ++at_;
    return true;
  }

  bool scalar() {
    switch (at_ == end_ ? '\0' : *at_) {
      case 'n':
        return word("null") && sink_.null();
      case 't':
        return word("true") && sink_.boolean(true);
      case 'f':
        return word("false") && sink_.boolean(false);
      default:
        return number();
    }
  }
  bool word(std::string_view name) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(name)) return false;
    at_ += name.size();
    return true;
  }

  // Digits from here on, at least one; their value, which is right for up to 18.
  bool digits(std::uint64_t& value) {
    const char* const begin = at_;
    for (value = 0; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_)
      value = 10 * value + static_cast<std::uint64_t>(*at_ - '0');
    return at_ != begin;
  }
  bool skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool number() {
    const char* const begin = at_;
    const bool negative = skip('-');
    const char* const whole = at_;
    std::uint64_t value = 0, behind = 0;
    if (!digits(value) || (*whole == '0' && at_ - whole > 1)) return false;
    const auto length = at_ - whole;
    bool fraction = false;
    if (skip('.')) {
      fraction = true;
      if (!digits(behind)) return false;
    }
    if (skip('e') || skip('E')) {
      fraction = true;
      if (!skip('-')) skip('+');
      if (!digits(behind)) return false;
    }
    if (fraction) return real(begin);
    // Longer numbers, and -0, which is no whole number, are the library's.
    constexpr std::ptrdiff_t kMostDigits = 18;
    if (length > kMostDigits || (negative && value == 0)) return false;
    const auto magnitude = static_cast<std::int64_t>(value);
    return sink_.number_integer(negative ? -magnitude : magnitude);
  }
  bool real(const char* begin) {
    double value = 0;
    if (std::from_chars(begin, at_, value).ec != std::errc()) return false;
    return sink_.number_float(value, read_);
  }

  const char* at_;
  const char* end_;
  Sink& sink_;
  std::vector<char> open_;  // lists and maps around the value
  std::string read_;
};

}  // namespace tbdsim
