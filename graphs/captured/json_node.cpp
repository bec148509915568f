#include "graphs/captured/json_node.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

using Json = nlohmann::json;

const Json& json_of(const void* json) { return *static_cast<const Json*>(json); }

Mark mark_of(const std::string& file) { return {.file = std::make_shared<const std::string>(file)}; }

// The value as errors quote it.
std::string shown(const Json& json) {
  constexpr std::size_t kLongest = 40;
  if (json.is_array()) return "a list of " + std::to_string(json.size());
  if (json.is_object()) return "a map";
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// Counts what a document holds while it is parsed.
class Limits {
 public:
  Limits(const std::string& file, int depth, std::size_t most) : file_(file), depth_(depth), most_(most) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > depth_)
      throw SpecError(mark_of(file_),
                      "nests deeper than " + std::to_string(depth_) + "; expected a step file");
    if (++values_ > most_)
      throw SpecError(mark_of(file_),
                      "more than " + std::to_string(most_) + " values; expected a smaller step");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second)
      throw SpecError(mark_of(file_), "key " + shown(parsed) + " twice in one map; expected it once");
    return true;
  }

 private:
  const std::string& file_;
  int depth_;
  std::size_t most_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the maps that are open
};

}  // namespace

struct JsonDocument::Content {
  Json root;
};

JsonDocument::JsonDocument(std::string file, const std::string& text, int depth, std::size_t most)
    : file_(std::move(file)), content_(std::make_unique<Content>()) {
  try {
    Limits limits(file_, depth, most);
    content_->root = Json::parse(text, [&limits](int at, Json::parse_event_t event, Json& parsed) {
      return limits(at, event, parsed);
    });
  } catch (const Json::parse_error& error) {
    throw SpecError(mark_of(file_),
                    "no JSON at byte " + std::to_string(error.byte) + "; expected a step file");
  } catch (const Json::exception&) {
    throw SpecError(mark_of(file_), "no JSON; expected a step file");
  }
}

JsonDocument::~JsonDocument() = default;

JsonNode JsonDocument::root() const { return {*this, &content_->root, nullptr, "", 0}; }

std::string JsonNode::place() const {
  if (above_ == nullptr) return "";
  const std::string before = above_->place();
  if (key_.empty()) return before + "[" + std::to_string(index_) + "]";
  return before.empty() ? std::string(key_) : before + "." + std::string(key_);
}

void JsonNode::fail(const std::string& expected) const {
  const std::string where = place();
  throw SpecError(mark_of(document_->file()),
                  (where.empty() ? "" : where + ": ") + shown(json_of(json_)) + "; expected " + expected);
}

bool JsonNode::is_null() const { return json_of(json_).is_null(); }
bool JsonNode::is_flag() const { return json_of(json_).is_boolean(); }
bool JsonNode::is_number() const { return json_of(json_).is_number(); }
bool JsonNode::is_whole() const { return json_of(json_).is_number_integer(); }
bool JsonNode::is_text() const { return json_of(json_).is_string(); }
bool JsonNode::is_list() const { return json_of(json_).is_array(); }
bool JsonNode::is_map() const { return json_of(json_).is_object(); }

bool JsonNode::flag() const {
  if (!is_flag()) fail("true or false");
  return json_of(json_).get<bool>();
}

double JsonNode::number() const {
  if (!is_number()) fail("a number");
  return json_of(json_).get<double>();
}

std::int64_t JsonNode::whole(std::int64_t least, std::int64_t most) const {
  const Json& json = json_of(json_);
  const auto expected = [&] {
    return "a whole number, " + std::to_string(least) + " to " + std::to_string(most);
  };
  if (!json.is_number_integer()) fail(expected());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    fail(expected());
  const auto value = json.get<std::int64_t>();
  if (value < least || value > most) fail(expected());
  return value;
}

std::string JsonNode::text(std::size_t most_bytes) const {
  if (!is_text()) fail("a text");
  const auto& text = json_of(json_).get_ref<const std::string&>();
  if (text.size() > most_bytes) fail("a text of at most " + std::to_string(most_bytes) + " bytes");
  return text;
}

std::size_t JsonNode::one_of(std::span<const std::string_view> names) const {
  const std::vector<std::string> known(names.begin(), names.end());
  if (!is_text()) fail("one of " + joined(known));
  const auto& text = json_of(json_).get_ref<const std::string&>();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) fail("one of " + joined(known) + did_you_mean(text, known));
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t JsonNode::size() const { return json_of(json_).size(); }

JsonNode JsonNode::operator[](std::size_t index) const {
  return {*document_, &json_of(json_)[index], this, "", index};
}

JsonNode JsonNode::item(std::size_t index, std::string_view name) const {
  return {*document_, &json_of(json_)[index], this, name, index};
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
  for (const auto& item : json_of(json_).items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      at(item.key()).fail("one of the keys " + joined(known) + did_you_mean(item.key(), known));
  }
  for (const std::string_view key : keys) {
    if (!has(key)) fail("a key " + in_quotes(std::string(key)));
  }
}

JsonNode JsonNode::at(std::string_view key) const {
  return {*document_, &*json_of(json_).find(std::string(key)), this, key, 0};
}

bool JsonNode::has(std::string_view key) const { return json_of(json_).contains(std::string(key)); }

}  // namespace tbdsim
