#include "hwspecs/base/spec_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

// "1 to 64", "at least 1", or "0 or more" for messages.
std::string range_text(std::int64_t least, std::int64_t most) {
  if (most == std::numeric_limits<std::int64_t>::max()) return fmt::format("{} or more", least);
  return fmt::format("{} to {}", least, most);
}

// The keys in their order, without repetitions.
std::vector<std::string> each_once(const std::vector<std::string>& keys) {
  std::vector<std::string> once;
  for (const std::string& key : keys)
    if (std::find(once.begin(), once.end(), key) == once.end()) once.push_back(key);
  return once;
}

}  // namespace

void SpecNode::fail(const std::string& what) const {
  throw SpecError(tree_->mark, path_.empty() ? what : path_ + ": " + what);
}

// The scalar's text. `expected` makes the text of what was expected, only for the error message.
template <class Expected>
const std::string& SpecNode::scalar(Expected expected) const {
  if (tree_->kind == SpecTree::Kind::list) fail(fmt::format("a list; expected {}", expected()));
  if (tree_->kind == SpecTree::Kind::map) fail(fmt::format("a map of keys; expected {}", expected()));
  if (tree_->text.empty()) fail(fmt::format("has no value; expected {}", expected()));
  return tree_->text;
}

void SpecNode::map(const std::function<void(SpecMap&)>& read) const {
  SpecMap map(*this);
  read(map);
  map.reject_unknown_keys();
}

std::vector<SpecNode> SpecNode::list() const {
  if (tree_->kind != SpecTree::Kind::list) fail("is no list; expected [a, b, ...]");
  std::vector<SpecNode> nodes;
  nodes.reserve(tree_->items.size());
  for (const SpecTree& item : tree_->items) {
    nodes.emplace_back(item, fmt::format("{}[{}]", path_, nodes.size()));
  }
  return nodes;
}

std::string SpecNode::text() const {
  return scalar([] { return "text"; });
}

bool SpecNode::flag() const {
  const std::string& word = scalar([] { return "true or false"; });
  if (!tree_->quoted && word == "true") return true;
  if (!tree_->quoted && word == "false") return false;
  fail(in_quotes(word) + " is neither true nor false");
}

namespace {

std::optional<std::int64_t> rounded(std::string_view word) {
  constexpr double kMost = 9e18;  // of 64 bits
  const auto number = parse_number(word);
  return number && std::abs(*number) < kMost ? std::optional(std::llround(*number)) : std::nullopt;
}

}  // namespace

std::int64_t SpecNode::count(std::int64_t least, std::int64_t most) const {
  const auto expected = [&] { return "a whole number, " + range_text(least, most); };
  const std::string& word = scalar(expected);
  const auto wrong = [&](const char* what) { fail(in_quotes(word) + what + "; expected " + expected()); };
  if (tree_->quoted) wrong(" is text in quotes");
  if (word.size() > 1 && word[0] == '0' && word.find_first_not_of("01234567") == std::string::npos)
    wrong(" has a leading zero, which YAML reads as octal");
  const bool scaled = tree_->change == SpecTree::Change::scaled;
  const auto value = scaled ? rounded(word) : parse_whole_number(word);
  const bool digits = word.find_first_not_of("0123456789", word[0] == '-' ? 1 : 0) == std::string::npos;
  if (!value && digits && word.size() > 18) wrong(" is out of range");
  if (!value) wrong(" is not a whole number");
  if (*value < 0 && least >= 0) wrong(" is negative");
  if (*value < least || *value > most) wrong(" is out of range");
  return *value;
}

double SpecNode::number(double least, double most) const {
  const auto expected = [&] { return fmt::format("a number, {} to {}", least, most); };
  const std::string& word = scalar(expected);
  const auto wrong = [&](const char* what) { fail(in_quotes(word) + what + "; expected " + expected()); };
  const auto value = tree_->quoted ? std::nullopt : parse_number(word);
  if (!value) wrong(" is not a number");
  if (*value < least || *value > most) wrong(" is out of range");
  return *value;
}

double SpecNode::positive_si(const Dimension& dimension) const {
  const std::string& word = scalar([] { return "a number with a unit"; });
  double si = 0;
  try {
    si = parse_si(word, dimension);
  } catch (const std::invalid_argument& why) {
    fail(why.what());
  }
  if (si <= 0) fail(in_quotes(word) + " is zero; expected more than zero");
  return si;
}

std::size_t SpecNode::one_of(std::span<const std::string_view> names) const {
  const auto known = [&] { return std::vector<std::string>(names.begin(), names.end()); };
  const std::string& word = scalar([&] { return "one of " + joined(known()); });
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) {
    fail(in_quotes(word) + " is unknown; expected one of " + joined(known()) + did_you_mean(word, known()));
  }
  return static_cast<std::size_t>(found - names.begin());
}

SpecMap::SpecMap(const SpecNode& node) : node_(node) {
  if (node.tree().kind != SpecTree::Kind::map) node.fail("is no map; expected 'key: value' lines");
  asked_.reserve(2 * node.tree().entries.size());
}

std::string SpecMap::path_of(std::string_view key) const {
  return node_.path().empty() ? std::string(key) : node_.path() + "." + std::string(key);
}

std::optional<SpecNode> SpecMap::find(std::string_view key) {
  asked_.emplace_back(key);
  for (const SpecEntry& entry : node_.tree().entries) {
    if (entry.key == key) return SpecNode(entry.value, path_of(key));
  }
  return std::nullopt;
}

std::vector<std::string> SpecMap::texts(std::string_view key) {
  std::vector<std::string> all;
  if (const auto list = find(key)) {
    for (const SpecNode& item : list->list()) all.push_back(item.text());
  }
  return all;
}

SpecNode SpecMap::at(std::string_view key) {
  if (auto found = find(key)) return *found;
  std::vector<std::string> present;
  for (const SpecEntry& entry : node_.tree().entries) present.push_back(entry.key);
  // A misspelt key is the usual reason for a missing one, so it is the one to point at.
  for (const SpecEntry& entry : node_.tree().entries) {
    const bool asked = std::find(asked_.begin(), asked_.end(), entry.key) != asked_.end();
    const std::string wanted(key);
    if (!asked && edit_distance(entry.key.substr(0, 64), wanted) <= 2) {
      throw SpecError(entry.mark, fmt::format("key {} is missing; is {} meant to be it?",
                                              key_in_quotes(path_of(key)), key_in_quotes(entry.key)));
    }
  }
  throw SpecError(node_.mark(), fmt::format("key {} is missing", key_in_quotes(path_of(key))));
}

std::vector<SpecMap::NamedNode> SpecMap::all() {
  asked_all_ = true;
  std::vector<NamedNode> nodes;
  for (const SpecEntry& entry : node_.tree().entries) {
    nodes.push_back({entry.key, entry.mark, SpecNode(entry.value, path_of(entry.key))});
  }
  return nodes;
}

void SpecMap::reject_unknown_keys() const {
  if (asked_all_) return;
  for (const SpecEntry& entry : node_.tree().entries) {
    if (std::find(asked_.begin(), asked_.end(), entry.key) != asked_.end()) continue;
    std::string hint = did_you_mean(entry.key, asked_);
    if (hint.empty()) hint = asked_.empty() ? "" : "; expected one of " + joined(each_once(asked_));
    throw SpecError(entry.mark, "unknown key " + key_in_quotes(path_of(entry.key)) + hint);
  }
}

}  // namespace tbdsim
