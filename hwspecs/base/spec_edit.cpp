#include "hwspecs/base/spec_edit.h"

#include <algorithm>

#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/spec_writer.h"

namespace tbdsim {
namespace {

constexpr std::size_t kIndentation = 2;
constexpr std::string_view kSources = "sources";

using Path = std::span<const std::string>;

const SpecEntry* entry_of(const SpecTree& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const SpecEntry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

std::size_t offset_of(const std::string& text, const Mark& mark) {
  std::size_t line_start = 0;
  for (int line = 1; line < mark.line; ++line) line_start = text.find('\n', line_start) + 1;
  return line_start + static_cast<std::size_t>(mark.column - 1);
}

std::size_t line_start_of(const std::string& text, const Mark& mark) {
  return offset_of(text, {mark.file, mark.line, 1});
}

// Behind the last character of the scalar that begins at `at`, quotes included.
std::size_t end_of(const std::string& text, std::size_t at, const SpecTree& scalar) {
  if (!scalar.quoted) return at + scalar.text.size();
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    const bool doubled = quote == '\'' && text[i] == quote && i + 1 < text.size() && text[i + 1] == quote;
    if (doubled || (quote == '"' && text[i] == '\\')) {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

std::string written(const SpecTree& scalar) {
  std::string text = write_spec(scalar);
  text.pop_back();  // the end of the line
  return text;
}

// "a: {b: 1}".
std::string in_braces(Path keys, const SpecTree& scalar) {
  if (keys.size() == 1) return keys[0] + ": " + written(scalar);
  return keys[0] + ": {" + in_braces(keys.subspan(1), scalar) + "}";
}

// A line for each key.
std::string in_lines(Path keys, const SpecTree& scalar, std::size_t indentation) {
  const std::string line = std::string(indentation, ' ') + keys[0] + ":";
  if (keys.size() == 1) return line + " " + written(scalar) + "\n";
  return line + "\n" + in_lines(keys.subspan(1), scalar, indentation + kIndentation);
}

std::string with_keys(std::string text, const SpecTree& map, bool root, Path keys, const SpecTree& scalar) {
  const std::size_t at = offset_of(text, map.mark);
  if (text[at] == '{')
    return text.insert(at + 1, in_braces(keys, scalar) + (map.entries.empty() ? "" : ", "));
  const SpecEntry& first = map.entries.front();
  const std::string lines = in_lines(keys, scalar, static_cast<std::size_t>(first.mark.column - 1));
  const SpecEntry* sources = entry_of(map, kSources);
  if (root && sources == nullptr) return text + (text.ends_with('\n') ? "" : "\n") + lines;
  return text.insert(line_start_of(text, (sources == nullptr ? first : *sources).mark), lines);
}

void require_value(const std::string& yaml, const std::string& file, Path path, const SpecTree& scalar,
                   const Mark& mark) {
  const auto value = [&] {
    const SpecTree tree = parse_spec(yaml, file);
    const SpecTree* at = &tree;
    for (const std::string& key : path) {
      const SpecEntry* entry = entry_of(*at, key);
      if (entry == nullptr) return std::string();
      at = &entry->value;
    }
    return at->text;
  };
  try {
    if (value() == scalar.text) return;
  } catch (const SpecError&) {  // said below
  }
  throw SpecError(mark, path.back() + " cannot be replaced in place; expected its value in one line");
}

}  // namespace

std::string set_spec_value(const std::string& yaml, const std::string& file, Path path,
                           const SpecTree& scalar) {
  const SpecTree root = parse_spec(yaml, file);
  const SpecTree* at = &root;
  std::string edited;
  for (std::size_t depth = 0; edited.empty(); ++depth) {
    if (depth == path.size()) {
      if (at->kind != SpecTree::Kind::scalar) throw SpecError(at->mark, "expected a single value");
      const std::size_t begin = offset_of(yaml, at->mark);
      edited = yaml;
      edited.replace(begin, end_of(yaml, begin, *at) - begin, written(scalar));
    } else {
      if (at->kind != SpecTree::Kind::map) throw SpecError(at->mark, "expected a map of keys");
      const SpecEntry* entry = entry_of(*at, path[depth]);
      if (entry == nullptr)
        edited = with_keys(yaml, *at, depth == 0, path.subspan(depth), scalar);
      else
        at = &entry->value;
    }
  }
  require_value(edited, file, path, scalar, at->mark);
  return edited;
}

}  // namespace tbdsim
