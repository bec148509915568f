// The text form of Protocol Buffers, of which Caffe's networks are: name: value, name { ... }.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

// Fields in order, each a text or a message.
struct PrototxtMessage {
  struct Field;
  std::vector<Field> fields;

  // Values of all fields of that name; the first one's, or the empty text or message where there is none.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] const PrototxtMessage& message(std::string_view name) const;
};
struct PrototxtMessage::Field {
  std::string name, text;
  std::optional<PrototxtMessage> message;
};

// Throws SpecError, with the line, for another text, and for one that nests deeper than 64 or has more than a
// million fields.
[[nodiscard]] PrototxtMessage read_prototxt(std::string_view text, const std::string& file);

}  // namespace tbdsim
