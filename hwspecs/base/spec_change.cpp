#include "hwspecs/base/spec_change.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::size_t kDeepest = 16;  // keys of a path

// "+50%" -> 1.5, "-20%" -> 0.8, "x2" -> 2; none for anything else.
std::optional<double> factor_of(std::string_view value) {
  constexpr double kPercent = 100;
  if (value.starts_with('x')) return parse_number(value.substr(1));
  const bool sign = value.starts_with('+') || value.starts_with('-');
  if (!sign || !value.ends_with('%')) return std::nullopt;
  const auto percent = parse_number(value.substr(1, value.size() - 2));
  if (!percent || *percent < 0) return std::nullopt;
  return 1 + (value[0] == '+' ? *percent : -*percent) / kPercent;
}

Mark mark_of(const SpecChange& change) {
  return {std::make_shared<const std::string>(to_text(change)), 0, 0};
}

SpecTree tree_of(const SpecChange& change, const Mark& mark) {
  SpecTree tree;
  if (change.value.starts_with('[') || change.value.starts_with('{')) {
    tree = parse_spec(change.value, to_text(change));
  } else {
    tree.text = with_space(change.value);
  }
  tree.mark = mark;
  tree.change = SpecTree::Change::replaced;
  return tree;
}

SpecEntry* entry_of(SpecTree& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const SpecEntry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

// "547.6 GB/s" times the factor.
void scale(SpecTree& value, double factor, const Mark& mark) {
  const std::size_t space = std::min(value.text.find(' '), value.text.size());
  const auto number = parse_number(std::string_view(value.text).substr(0, space));
  if (value.kind != SpecTree::Kind::scalar || value.quoted || !number)
    throw SpecError(mark, "the file has no number there; expected the new value itself");
  value.text = fmt::format("{}{}", *number * factor, value.text.substr(space));
  value.mark = mark;
  value.change = SpecTree::Change::scaled;
}

[[noreturn]] void fail_without_value(const SpecTree& map, const std::string& key, const Mark& mark) {
  std::vector<std::string> known;
  for (const SpecEntry& entry : map.entries) known.push_back(entry.key);
  const std::string hint = did_you_mean(key, known);
  throw SpecError(mark, "the file has no " + in_quotes(key) + " to change" +
                            (hint.empty() ? "; expected the new value itself" : hint));
}

SpecTree& item_of(SpecTree& list, const std::string& key, const Mark& mark) {
  const auto number = parse_whole_number(key);
  const auto size = static_cast<std::int64_t>(list.items.size());
  if (!number || *number < 0 || *number >= size)
    throw SpecError(mark, in_quotes(key) + " is no item of a list of " + std::to_string(size) +
                              "; expected a number from 0");
  return list.items[static_cast<std::size_t>(*number)];
}

void apply_change(SpecTree& root, const SpecChange& change) {
  const Mark mark = mark_of(change);
  SpecTree* at = &root;
  for (const std::string& key : change.path) {
    if (at->kind == SpecTree::Kind::list) {
      at = &item_of(*at, key, mark);
      continue;
    }
    if (at->kind != SpecTree::Kind::map)
      throw SpecError(mark, in_quotes(key) + " is a key of what is no map; expected keys of the file");
    SpecEntry* entry = entry_of(*at, key);
    if (entry == nullptr) {
      if (is_relative(change)) fail_without_value(*at, key, mark);
      SpecTree empty{.kind = SpecTree::Kind::map, .text = {}, .items = {}, .entries = {}, .mark = mark};
      empty.change = SpecTree::Change::replaced;
      entry = &at->entries.emplace_back(SpecEntry{key, mark, std::move(empty)});
    }
    at = &entry->value;
  }
  if (const auto factor = factor_of(change.value)) {
    scale(*at, *factor, mark);
  } else {
    *at = tree_of(change, mark);
  }
}

}  // namespace

SpecChange parse_change(const std::string& text) {
  const std::string expected = "; expected as gpu.memory_bandwidth=+50%";
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw UsageError(in_quotes(text) + " sets no value" + expected);
  SpecChange change;
  change.value = text.substr(equals + 1);
  if (change.value.empty() || equals == 0) throw UsageError(in_quotes(text) + " sets no value" + expected);
  for (std::size_t at = 0; at <= equals;) {
    const std::size_t point = std::min(text.find('.', at), equals);
    if (point == at || change.path.size() == kDeepest)
      throw UsageError(in_quotes(text.substr(0, equals)) + " is no path of keys" + expected);
    change.path.push_back(text.substr(at, point - at));
    at = point + 1;
  }
  if (change.path.size() > 1) {
    change.spec = change.path.front();
    change.path.erase(change.path.begin());
  }
  return change;
}

std::string with_space(const std::string& value) {
  const std::size_t end = value.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos || value.find(' ') != std::string::npos) return value;
  const bool letter = (value[end] >= 'a' && value[end] <= 'z') || (value[end] >= 'A' && value[end] <= 'Z');
  const bool exponent = value[end] == 'e' && parse_number(value).has_value();
  return letter && !exponent ? value.substr(0, end) + " " + value.substr(end) : value;
}

std::string key_text(const SpecChange& change) {
  std::string text = change.spec;
  if (!change.only.empty()) text += "." + change.only;
  for (const std::string& key : change.path) text += (text.empty() ? "" : ".") + key;
  return text;
}

std::string to_text(const SpecChange& change) { return key_text(change) + "=" + change.value; }

bool is_relative(const SpecChange& change) { return factor_of(change.value).has_value(); }

SpecChanges changes_of(const SpecChanges& changes, std::string_view spec, std::string_view name) {
  SpecChanges own;
  std::copy_if(changes.begin(), changes.end(), std::back_inserter(own), [&](const SpecChange& change) {
    return change.spec == spec && (change.only.empty() || change.only == name);
  });
  return own;
}

void apply_changes(SpecTree& tree, const SpecChanges& changes) {
  for (const SpecChange& change : changes) apply_change(tree, change);
}

bool has_value(const SpecTree& tree, const SpecChange& change) {
  const SpecTree* at = &tree;
  for (const std::string& key : change.path) {
    const auto found = std::find_if(at->entries.begin(), at->entries.end(),
                                    [&](const SpecEntry& entry) { return entry.key == key; });
    if (found == at->entries.end()) return false;
    at = &found->value;
  }
  return true;
}

}  // namespace tbdsim
