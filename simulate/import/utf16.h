// UTF-16 as UTF-8: what PowerShell's ">" writes of what a tool prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tbdsim {

[[nodiscard]] bool begins_as_utf16(std::string_view bytes);  // with a byte-order mark

// Decodes a text piece by piece, each of an even number of bytes but for the last.
class Utf16Decoder {
 public:
  explicit Utf16Decoder(bool big_end_first) : big_end_first_(big_end_first) {}

  // Appends the piece in UTF-8, U+FFFD in the place of what is no character.
  void append(std::string_view bytes, std::string& utf8);

 private:
  bool big_end_first_;
  std::uint32_t high_ = 0;  // the first half of a pair, whose other half comes next; 0: none
};

}  // namespace tbdsim
