// Wrong forms of a good file, by number: what readers must refuse or read, with neither a crash nor a hang.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tbdsim::test {

// Numbers that damaged() and absurd() take: 0 to one less.
inline constexpr int kDamages = 100;

// The bytes cut short, with one changed, a piece left out or put in twice, at places and with bytes that
// follow from the number.
[[nodiscard]] std::string damaged(std::string bytes, int number);

// The text with one of its numbers, of which `number` takes one after another, replaced by what is none or
// cannot be: other types, numbers without bounds, nesting, NaN, no UTF-8, NUL bytes, a line again.
[[nodiscard]] std::string absurd(std::string text, int number);

// The text as other systems and tools write it, and with what does not belong in it, by name: line ends,
// byte-order marks, UTF-16, NUL bytes, lines twice, very long lines, nesting before and after it.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> rewritten(const std::string& text);

// The beginning and then the piece so many times, in gzip.
[[nodiscard]] std::string gzipped(const std::string& begins, const std::string& piece, std::size_t times);

}  // namespace tbdsim::test
