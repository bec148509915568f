// A value of a parsed JSON document together with its place in it, `operators[12].arguments[3]`, which errors
// name. A node refers to the node above it, which must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/error.h"

namespace tbdsim {

class JsonDocument;

// A parsed value. Texts, and the items of lists and maps, lie in the document, which needs no tree of its
// own.
struct JsonValue {
  enum class Kind : std::uint8_t { null, flag, whole, number, text, list, map };
  Kind kind = Kind::null;
  bool flag = false;
  std::uint32_t key = 0;    // in a map: its number among the document's texts
  std::uint32_t first = 0;  // of a list or map: its first item; of a text: its number among the texts
  std::uint32_t count = 0;
  std::int64_t whole = 0;
  double number = 0;
};

class JsonNode {
 public:
  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_flag() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] bool is_text() const;
  [[nodiscard]] bool is_list() const;
  [[nodiscard]] bool is_map() const;

  // Throw SpecError for a value of another kind or out of range.
  [[nodiscard]] bool flag() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t whole(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] std::string text(std::size_t most_bytes) const;
  [[nodiscard]] std::size_t one_of(std::span<const std::string_view> names) const;  // the index

  [[nodiscard]] std::size_t size() const;  // of a list or a map
  [[nodiscard]] JsonNode operator[](std::size_t index) const;
  // An item of a list whose places have names: errors name it so.
  [[nodiscard]] JsonNode item(std::size_t index, std::string_view name) const;
  // Throw SpecError unless the list has this many items; unless the map has these keys and no others.
  void require_items(std::size_t count, std::string_view expected) const;
  void require_list(std::size_t most, std::string_view expected) const;
  void require_keys(std::span<const std::string_view> keys) const;
  [[nodiscard]] JsonNode at(std::string_view key) const;  // of a map that has it
  [[nodiscard]] bool has(std::string_view key) const;

  [[noreturn]] void fail(const std::string& expected) const;

 private:
  friend class JsonDocument;
  JsonNode(const JsonDocument& document, const JsonValue& value, const JsonNode* above, std::string_view key,
           std::size_t index)
      : document_(&document), value_(&value), above_(above), key_(key), index_(index) {}
  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string shown() const;  // the value as errors quote it
  [[nodiscard]] const JsonValue* find(std::string_view key) const;

  const JsonDocument* document_;
  const JsonValue* value_;
  const JsonNode* above_;
  std::string_view key_;
  std::size_t index_;
};

class JsonDocument {
 public:
  // Throws SpecError for text that is no JSON, has a key twice in a map, nests deeper than `depth` or has
  // more than `most` values. Errors name what the file should be, `what`.
  JsonDocument(std::string file, const std::string& text, std::size_t depth, std::size_t most,
               const std::string& what = "a step file");
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  [[nodiscard]] JsonNode root() const;
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& text(std::uint32_t number) const { return texts_[number]; }
  [[nodiscard]] const JsonValue& item(std::size_t number) const { return items_[number]; }

 private:
  std::string file_;
  std::vector<std::string> texts_;
  std::vector<JsonValue> items_;  // those of a list or map one behind another; the root last
};

}  // namespace tbdsim
