// Lines of a text that a tool printed, and numbers in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/error.h"

namespace tbdsim {

// The lines without their ends and without the escapes that colour a terminal.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);

[[nodiscard]] std::string_view trimmed(std::string_view text);

// The words between blanks.
[[nodiscard]] std::vector<std::string> words_of(std::string_view line);

// The number a text begins with, "1530 MHz" -> 1530, "(080) ..." -> 80 after the bracket; none where it
// begins with none.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);

[[nodiscard]] bool holds(std::string_view text, std::string_view part);

// Throws SpecError of that line.
[[noreturn]] void fail_at(const std::string& file, int line, const std::string& what);

}  // namespace tbdsim
