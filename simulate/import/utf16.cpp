#include "simulate/import/utf16.h"

namespace tbdsim {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

void append_utf8(std::uint32_t c, std::string& text) {
  const auto byte = [&](std::uint32_t bits) { text += static_cast<char>(bits); };
  const auto rest = [&](unsigned shift) { byte(0x80U | ((c >> shift) & 0x3fU)); };
  if (c < 0x80U) {
    byte(c);
  } else if (c < 0x800U) {
    byte(0xc0U | (c >> 6U));
    rest(0);
  } else if (c < 0x10000U) {
    byte(0xe0U | (c >> 12U));
    rest(6);
    rest(0);
  } else {
    byte(0xf0U | (c >> 18U));
    rest(12);
    rest(6);
    rest(0);
  }
}

}  // namespace

bool begins_as_utf16(std::string_view bytes) {
  return bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff");
}

void Utf16Decoder::append(std::string_view bytes, std::string& utf8) {
  constexpr std::uint32_t kHigh = 0xd800, kLow = 0xdc00, kAbove = 0xe000, kFirstOfPairs = 0x10000;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto first = static_cast<unsigned char>(bytes[i]),
               second = static_cast<unsigned char>(bytes[i + 1]);
    const std::uint32_t unit = big_end_first_ ? first * 256U + second : second * 256U + first;
    const bool is_low = unit >= kLow && unit < kAbove;
    if (high_ != 0) {
      append_utf8(is_low ? kFirstOfPairs + ((high_ - kHigh) << 10U) + (unit - kLow) : kReplacement, utf8);
      high_ = 0;
      if (is_low) continue;
    }
    if (unit >= kHigh && unit < kLow) {
      high_ = unit;
    } else {
      append_utf8(is_low ? kReplacement : unit, utf8);
    }
  }
  if (bytes.size() % 2 == 1) append_utf8(kReplacement, utf8);
}

}  // namespace tbdsim
