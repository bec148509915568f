// A message in the binary form of Protocol Buffers (protobuf.dev/programming-guides/encoding), field by
// field. Fields lie in the bytes that it was made of: nothing is copied.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tbdsim {

struct WireField {
  std::uint32_t number = 0;
  std::uint64_t bits = 0;    // of a number
  std::string_view bytes{};  // of a text, a message, packed numbers or a number of fixed width

  [[nodiscard]] std::int64_t whole() const { return static_cast<std::int64_t>(bits); }
  // The bits of `bytes` as a float; 0 where there are not four.
  [[nodiscard]] float single() const;
};

class WireMessage {
 public:
  explicit WireMessage(std::string_view bytes) : rest_(bytes) {}

  // Reads the next field; false at the end. Throws std::runtime_error for bytes that are no message.
  bool next(WireField& field);

 private:
  [[nodiscard]] std::string_view take(std::uint64_t count);

  std::string_view rest_;
};

// Adds a field of repeated whole numbers, packed or one by one; no more than `most` in all.
void append_whole_numbers(const WireField& field, std::size_t most, std::vector<std::int64_t>& values);

}  // namespace tbdsim
