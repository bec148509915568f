#include "simulate/import/prototxt_message.h"

#include "hwspecs/base/suggest.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr int kDeepest = 64;

const PrototxtMessage kNone{};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  PrototxtMessage message(int depth) {
    if (depth > kDeepest) fail("nests deeper than 64");
    PrototxtMessage message;
    for (std::string name = token(); !name.empty() && name != "}"; name = token()) {
      if (name == ";" || name == ",") continue;
      PrototxtMessage::Field field{.name = name, .text = {}, .message = {}};
      std::string next = token();
      if (next == ":") next = token();
      if (next == "{") {
        field.message = this->message(depth + 1);
      } else if (next.empty() || next == "}" || next == ":") {
        fail(in_quotes(name) + " without a value");
      } else {
        field.text = next;
      }
      message.fields.push_back(std::move(field));
      if (++fields_ > kMostFields) fail("more than a million fields");
    }
    return message;
  }

  [[noreturn]] void fail(const std::string& what) const {
    fail_at(file_, line_, what + "; expected a prototxt of Caffe");
  }

 private:
  static constexpr std::size_t kMostFields = 1'000'000;

  // A word, a text in quotes without them, or one of { } : ; , and the empty text at the end.
  std::string token() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
        line_ += c == '\n';
        ++at_;
      } else {
        break;
      }
    }
    if (at_ >= text_.size()) return {};
    const char first = text_[at_];
    if (std::string_view("{}:;,").find(first) != std::string_view::npos) return std::string(1, text_[at_++]);
    std::string word;
    if (first == '"' || first == '\'') {
      for (++at_; at_ < text_.size() && text_[at_] != first; ++at_) {
        if (text_[at_] == '\n') fail("a text without its closing quote");
        word += text_[at_];
      }
      if (at_++ >= text_.size()) fail("a text without its closing quote");
      return word.empty() ? " " : word;
    }
    while (at_ < text_.size() &&
           std::string_view("{}:;, \t\r\n#\"'").find(text_[at_]) == std::string_view::npos)
      word += text_[at_++];
    return word;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t fields_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<std::string> PrototxtMessage::texts(std::string_view name) const {
  std::vector<std::string> all;
  for (const Field& field : fields) {
    if (field.name == name && !field.message) all.push_back(field.text);
  }
  return all;
}

std::string PrototxtMessage::text(std::string_view name) const {
  const std::vector<std::string> all = texts(name);
  return all.empty() ? std::string() : all.front();
}

const PrototxtMessage& PrototxtMessage::message(std::string_view name) const {
  for (const Field& field : fields) {
    if (field.name == name && field.message) return *field.message;
  }
  return kNone;
}

PrototxtMessage read_prototxt(std::string_view text, const std::string& file) {
  return Parser(text, file).message(0);
}

}  // namespace tbdsim
