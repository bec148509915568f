#include "graphs/captured/json_node.h"

#include <algorithm>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include "graphs/captured/plain_json.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

using Json = nlohmann::json;
using Kind = JsonValue::Kind;

Mark mark_of(const std::string& file) { return {.file = std::make_shared<const std::string>(file)}; }

// The line and column of a byte, the first of which is 1.
Mark mark_at(const std::string& file, std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  Mark mark = mark_of(file);
  mark.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  mark.column = static_cast<int>(before.size() - (before.rfind('\n') + 1)) + 1;  // npos + 1 is 0
  return mark;
}

// Collects values as the library's parser meets them: those of open lists and maps on a stack, which a list
// or map that ends moves behind the document's items.
class Collector final : public nlohmann::json_sax<Json> {
 public:
  Collector(const std::string& file, std::string_view text, std::size_t depth, std::size_t most,
            const std::string& expected, std::vector<std::string>& texts, std::vector<JsonValue>& items)
      : file_(file),
        text_(text),
        depth_(depth),
        most_(most),
        expected_(expected),
        texts_(texts),
        items_(items) {}

  bool null() override { return add({.kind = Kind::null}); }
  bool boolean(bool value) override { return add({.kind = Kind::flag, .flag = value}); }
  bool number_integer(number_integer_t value) override { return add({.kind = Kind::whole, .whole = value}); }
  // Beyond 63 bits it is no whole number of ours.
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      return add({.kind = Kind::number, .number = static_cast<double>(value)});
    return add({.kind = Kind::whole, .whole = static_cast<std::int64_t>(value)});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add({.kind = Kind::number, .number = value});
  }
  bool string(string_t& value) override { return add({.kind = Kind::text, .first = keep(value)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(); }
  bool key(string_t& value) override {
    key_ = keep(value);
    return true;
  }
  bool end_object() override {
    require_distinct_keys();
    return close(Kind::map);
  }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(Kind::list); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    throw SpecError(mark_at(file_, text_, position), "no JSON from here on; expected " + expected_);
  }

  [[nodiscard]] const JsonValue& root() const { return stack_.front(); }

 private:
  struct Open {
    std::size_t first = 0;  // of its items on the stack
    std::uint32_t key = 0;
  };

  [[noreturn]] void fail(const std::string& what) const { throw SpecError(mark_of(file_), what); }

  std::uint32_t keep(std::string& text) {
    texts_.push_back(std::move(text));
    return static_cast<std::uint32_t>(texts_.size() - 1);
  }

  bool add(JsonValue value) {
    if (++values_ > most_) fail("more than " + std::to_string(most_) + " values; expected a smaller file");
    value.key = key_;
    stack_.push_back(value);
    return true;
  }

  bool open() {
    if (open_.size() >= depth_)
      fail("nests deeper than " + std::to_string(depth_) + "; expected " + expected_);
    open_.push_back({stack_.size(), key_});
    return true;
  }

  bool close(Kind kind) {
    const Open opened = open_.back();
    open_.pop_back();
    const auto first = static_cast<std::uint32_t>(items_.size());
    const auto count = static_cast<std::uint32_t>(stack_.size() - opened.first);
    items_.insert(items_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(opened.first), stack_.end());
    stack_.resize(opened.first);
    key_ = opened.key;
    return add({.kind = kind, .first = first, .count = count});
  }

  void require_distinct_keys() const {
    if (stack_.size() - open_.back().first < 2) return;
    std::set<std::string_view> keys;
    for (std::size_t i = open_.back().first; i < stack_.size(); ++i) {
      const std::string& name = texts_[stack_[i].key];
      if (!keys.insert(name).second) fail("key " + in_quotes(name) + " twice in one map; expected it once");
    }
  }

  const std::string& file_;
  std::string_view text_;
  std::size_t depth_, most_;
  const std::string& expected_;
  std::vector<std::string>& texts_;
  std::vector<JsonValue>& items_;
  std::vector<JsonValue> stack_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
  std::uint32_t key_ = 0;
};

}  // namespace

JsonDocument::JsonDocument(std::string file, const std::string& text, std::size_t depth, std::size_t most,
                           const std::string& what)
    : file_(std::move(file)) {
  Collector plain(file_, text, depth, most, what, texts_, items_);
  if (PlainJson(text, plain).run()) {
    items_.push_back(plain.root());
    return;
  }
  texts_.clear();
  items_.clear();
  Collector collector(file_, text, depth, most, what, texts_, items_);
  if (!Json::sax_parse(text, &collector)) throw SpecError(mark_of(file_), "no JSON; expected " + what);
  items_.push_back(collector.root());
}

JsonNode JsonDocument::root() const { return {*this, items_.back(), nullptr, "", 0}; }

std::string JsonNode::place() const {
  if (above_ == nullptr) return "";
  const std::string before = above_->place();
  if (key_.empty()) return before + "[" + std::to_string(index_) + "]";
  return before.empty() ? std::string(key_) : before + "." + std::string(key_);
}

std::string JsonNode::shown() const {
  constexpr std::size_t kLongest = 40;
  switch (value_->kind) {
    case Kind::null:
      return "null";
    case Kind::flag:
      return value_->flag ? "true" : "false";
    case Kind::whole:
      return std::to_string(value_->whole);
    case Kind::number:
      return Json(value_->number).dump();
    case Kind::list:
      return "a list of " + std::to_string(value_->count);
    case Kind::map:
      return "a map";
    case Kind::text:
      break;
  }
  const std::string text =
      Json(document_->text(value_->first)).dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

void JsonNode::fail(const std::string& expected) const {
  const std::string where = place();
  throw SpecError(mark_of(document_->file()),
                  (where.empty() ? "" : where + ": ") + shown() + "; expected " + expected);
}

bool JsonNode::is_null() const { return value_->kind == Kind::null; }
bool JsonNode::is_flag() const { return value_->kind == Kind::flag; }
bool JsonNode::is_number() const { return value_->kind == Kind::number || is_whole(); }
bool JsonNode::is_whole() const { return value_->kind == Kind::whole; }
bool JsonNode::is_text() const { return value_->kind == Kind::text; }
bool JsonNode::is_list() const { return value_->kind == Kind::list; }
bool JsonNode::is_map() const { return value_->kind == Kind::map; }

bool JsonNode::flag() const {
  if (!is_flag()) fail("true or false");
  return value_->flag;
}

double JsonNode::number() const {
  if (!is_number()) fail("a number");
  return is_whole() ? static_cast<double>(value_->whole) : value_->number;
}

std::int64_t JsonNode::whole(std::int64_t least, std::int64_t most) const {
  if (!is_whole() || value_->whole < least || value_->whole > most)
    fail("a whole number, " + std::to_string(least) + " to " + std::to_string(most));
  return value_->whole;
}

std::string JsonNode::text(std::size_t most_bytes) const {
  if (!is_text()) fail("a text");
  const std::string& text = document_->text(value_->first);
  if (text.size() > most_bytes) fail("a text of at most " + std::to_string(most_bytes) + " bytes");
  return text;
}

std::size_t JsonNode::one_of(std::span<const std::string_view> names) const {
  const auto known = [&] { return std::vector<std::string>(names.begin(), names.end()); };
  if (!is_text()) fail("one of " + joined(known()));
  const std::string& text = document_->text(value_->first);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) fail("one of " + joined(known()) + did_you_mean(text, known()));
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t JsonNode::size() const { return value_->count; }

JsonNode JsonNode::operator[](std::size_t index) const { return item(index, ""); }

JsonNode JsonNode::item(std::size_t index, std::string_view name) const {
  return {*document_, document_->item(value_->first + index), this, name, index};
}

void JsonNode::require_items(std::size_t count, std::string_view expected) const {
  if (!is_list() || size() != count) fail(std::string(expected));
}

void JsonNode::require_list(std::size_t most, std::string_view expected) const {
  if (!is_list()) fail(std::string(expected));
  if (size() > most) fail("at most " + std::to_string(most) + " items");
}

void JsonNode::require_keys(std::span<const std::string_view> keys) const {
  const std::vector<std::string> known(keys.begin(), keys.end());
  if (!is_map()) fail("a map of " + joined(known));
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string& key = document_->text(document_->item(value_->first + i).key);
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      item(i, key).fail("one of the keys " + joined(known) + did_you_mean(key, known));
  }
  for (const std::string_view key : keys) {
    if (!has(key)) fail("a key " + in_quotes(std::string(key)));
  }
}

const JsonValue* JsonNode::find(std::string_view key) const {
  for (std::size_t i = 0; is_map() && i < size(); ++i) {
    const JsonValue& value = document_->item(value_->first + i);
    if (document_->text(value.key) == key) return &value;
  }
  return nullptr;
}

JsonNode JsonNode::at(std::string_view key) const { return {*document_, *find(key), this, key, 0}; }

bool JsonNode::has(std::string_view key) const { return find(key) != nullptr; }

}  // namespace tbdsim
