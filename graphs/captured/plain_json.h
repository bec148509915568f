// Reads plain JSON in one pass: texts without escapes, of printable ASCII, and numbers. Other text, and text
// that is no JSON, is left to the library, which takes six times as many instructions.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

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
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
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
    while (at_ != end_ && *at_ >= ' ' && *at_ < 127 && *at_ != '"' && *at_ != '\\') ++at_;
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
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    if (rest.starts_with("null")) return word(4) && sink_.null();
    if (rest.starts_with("true")) return word(4) && sink_.boolean(true);
    if (rest.starts_with("false")) return word(5) && sink_.boolean(false);
    return number();
  }
  bool word(std::size_t length) {
    at_ += length;
    return true;
  }

  bool digits() {
    const char* const begin = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != begin;
  }
  bool skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool number() {
    const char* const begin = at_;
    skip('-');
    const bool zero = at_ != end_ && *at_ == '0';
    const char* const whole = at_;
    if (!digits() || (zero && at_ - whole > 1)) return false;
    bool fraction = false;
    if (skip('.')) {
      fraction = true;
      if (!digits()) return false;
    }
    if (skip('e') || skip('E')) {
      fraction = true;
      if (!skip('-')) skip('+');
      if (!digits()) return false;
    }
    return fraction ? real(begin) : integer(begin);
  }
  // Numbers beyond 64 bits, and -0, which is no whole number, are the library's.
  bool integer(const char* begin) {
    std::int64_t value = 0;
    if (std::from_chars(begin, at_, value).ec != std::errc() || (value == 0 && *begin == '-')) return false;
    return sink_.number_integer(value);
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
