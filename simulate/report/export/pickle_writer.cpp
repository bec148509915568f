#include "simulate/report/export/pickle_writer.h"

#include <limits>

namespace tbdsim {

void PickleWriter::bytes(std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out_ << static_cast<char>((value >> (8 * i)) & 0xffU);
}

void PickleWriter::text(std::string_view text) {
  constexpr std::size_t kLongest = 255;
  std::size_t size = text.size();
  if (size > kLongest) {
    size = kLongest;
    const auto continues = [&] { return (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U; };
    while (size > 0 && continues()) --size;  // not within a character
  }
  out_ << '\x8c';
  bytes(size, 1);
  out_ << text.substr(0, size);
}

void PickleWriter::number(std::int64_t number) {
  if (number >= std::numeric_limits<std::int32_t>::min() &&
      number <= std::numeric_limits<std::int32_t>::max()) {
    out_ << 'J';
    bytes(static_cast<std::uint64_t>(number), 4);
    return;
  }
  out_ << '\x8a';
  bytes(8, 1);
  bytes(static_cast<std::uint64_t>(number), 8);
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  number(first);
  number(second);
  out_ << '\x86';
}

}  // namespace tbdsim
