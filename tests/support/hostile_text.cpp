#include "tests/support/hostile_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include <zlib.h>

namespace tbdsim::test {
namespace {

std::string with_line_ends(const std::string& text, const std::string& end) {
  std::string all;
  for (const char c : text) all += c == '\n' ? end : std::string(1, c);
  return all;
}

std::string with_lines_twice(const std::string& text) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at) + '\n';
    all += line + line;
    at = end + 1;
  }
  return all;
}

// UTF-16 of a text in ASCII, with a byte-order mark.
std::string in_utf16(const std::string& text, bool big_end_first) {
  std::string all = big_end_first ? "\xfe\xff" : "\xff\xfe";
  for (const char c : text) {
    if (big_end_first) all += '\0';
    all += c;
    if (!big_end_first) all += '\0';
  }
  return all;
}

}  // namespace

std::string damaged(std::string bytes, int number) {
  constexpr int kKinds = 4;
  const std::size_t at = bytes.size() * static_cast<std::size_t>(number) / (kDamages + 1);
  const std::size_t piece =
      std::min<std::size_t>(bytes.size() - at, 1 + static_cast<std::size_t>(number) * 7 % 60);
  switch (number % kKinds) {
    case 0:
      return bytes.substr(0, at);
    case 1:
      bytes[at] = static_cast<char>("\0\xff{}<>\"',:-9"[number % 12]);
      return bytes;
    case 2:
      return bytes.erase(at, piece);
    default:
      return bytes.insert(at, bytes.substr(at, piece));
  }
}

std::string absurd(std::string text, int number) {
  static const std::string kInstead[] = {"-1",
                                         "0",
                                         "1e308",
                                         "1e999",
                                         "NaN",
                                         "-Infinity",
                                         "99999999999999999999999999",
                                         "-9223372036854775808",
                                         "4294967297",
                                         "\"text\"",
                                         "null",
                                         "true",
                                         "0x7f",
                                         "\xff\xfe\xc0\x80",
                                         std::string("\0\0", 2),
                                         std::string(2'000, '['),
                                         std::string(100'000, '9'),
                                         "{\"a\": 1, \"a\": 2}",
                                         "1\n1",
                                         ""};
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = std::min(text.find_first_of("0123456789", at), text.size());
    at = std::min(text.find_first_not_of("0123456789.", first), text.size());
    if (at > first) spans.emplace_back(first, at - first);
  }
  const auto [at, length] = spans[spans.size() * static_cast<std::size_t>(number) / kDamages];
  return text.replace(at, length, kInstead[static_cast<std::size_t>(number) % std::size(kInstead)]);
}

std::vector<std::pair<std::string, std::string>> rewritten(const std::string& text) {
  constexpr std::size_t kMany = 100'000, kLong = 1'000'000;
  return {{"nothing", ""},
          {"a byte-order mark alone", "\xef\xbb\xbf"},
          {"a byte-order mark", "\xef\xbb\xbf" + text},
          {"CR LF", with_line_ends(text, "\r\n")},
          {"CR", with_line_ends(text, "\r")},
          {"UTF-16, little end first", in_utf16(text, false)},
          {"UTF-16, big end first", in_utf16(text, true)},
          {"every line twice", with_lines_twice(text)},
          {"the file twice", text + text},
          {"NUL bytes at the end", text + std::string(4'096, '\0')},
          {"NUL bytes alone", std::string(4'096, '\0')},
          {"no UTF-8 at the end", text + "\xff\xfe\xc0\x80"},
          {"lists before it", std::string(kMany, '[') + text},
          {"maps before it", std::string(kMany, '{') + text},
          {"lists after it", text + std::string(kMany, '[')},
          {"a long line after it", text + std::string(kLong, 'x')},
          {"many lines after it", text + std::string(kLong, '\n')},
          {"many commas after it", text + std::string(kMany, ',')},
          {"many quotes after it", text + std::string(kMany + 1, '"')}};
}

std::string gzipped(const std::string& begins, const std::string& piece, std::size_t times) {
  constexpr int kGzip = 16, kMemoryLevel = 8;  // zlib.h, deflateInit2
  constexpr std::size_t kBuffer = 1U << 16U;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::runtime_error("no memory");
  std::string packed, buffer(kBuffer, '\0');
  const auto pack = [&](const std::string& bytes, int flush) {
    // zlib reads next_in and does not write to it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(kBuffer);
      deflate(&stream, flush);
      packed.append(buffer, 0, kBuffer - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  pack(begins, Z_NO_FLUSH);
  std::string many;
  const std::size_t at_once = std::max<std::size_t>(1, kBuffer / std::max<std::size_t>(1, piece.size()));
  for (std::size_t i = 0; i < at_once; ++i) many += piece;
  for (; times >= at_once; times -= at_once) pack(many, Z_NO_FLUSH);
  for (; times > 0; --times) pack(piece, Z_NO_FLUSH);
  pack("", Z_FINISH);
  deflateEnd(&stream);
  return packed;
}

}  // namespace tbdsim::test
