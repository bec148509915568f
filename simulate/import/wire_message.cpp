#include "simulate/import/wire_message.h"

#include <bit>
#include <cstring>

namespace tbdsim {
namespace {

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr std::uint32_t kTypeBits = 3;
constexpr std::uint64_t kMostNumber = (1U << 29U) - 1;  // of a field

// Takes a number of seven bits a byte, the low ones first, off the bytes.
std::uint64_t take_number(std::string_view& rest) {
  constexpr std::uint32_t kMostBits = 64, kBits = 7;
  std::uint64_t value = 0;
  for (std::uint32_t shift = 0; shift < kMostBits; shift += kBits) {
    if (rest.empty()) throw std::runtime_error("ends within a number");
    const auto byte = static_cast<std::uint8_t>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  throw std::runtime_error("holds a number of more than 64 bits");
}

}  // namespace

float WireField::single() const {
  static_assert(std::endian::native == std::endian::little, "numbers of fixed width are little-endian");
  float value = 0;
  if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

std::string_view WireMessage::take(std::uint64_t count) {
  if (count > rest_.size()) throw std::runtime_error("ends within a field");
  const std::string_view bytes = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(bytes.size());
  return bytes;
}

bool WireMessage::next(WireField& field) {
  if (rest_.empty()) return false;
  const std::uint64_t tag = take_number(rest_);
  field = {};
  if ((tag >> kTypeBits) == 0 || (tag >> kTypeBits) > kMostNumber)
    throw std::runtime_error("holds a field without a number");
  field.number = static_cast<std::uint32_t>(tag >> kTypeBits);
  switch (tag & ((1U << kTypeBits) - 1)) {
    case kVarint:
      field.bits = take_number(rest_);
      return true;
    case kFixed64:
      field.bytes = take(sizeof(std::uint64_t));
      return true;
    case kBytes:
      field.bytes = take(take_number(rest_));
      return true;
    case kFixed32:
      field.bytes = take(sizeof(std::uint32_t));
      return true;
    default:
      throw std::runtime_error("holds a field of no type that is known");
  }
}

void append_whole_numbers(const WireField& field, std::size_t most, std::vector<std::int64_t>& values) {
  if (field.bytes.empty()) {
    if (values.size() < most) values.push_back(field.whole());
    return;
  }
  std::string_view rest = field.bytes;
  while (!rest.empty() && values.size() < most)
    values.push_back(static_cast<std::int64_t>(take_number(rest)));
}

}  // namespace tbdsim
