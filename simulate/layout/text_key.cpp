#include "simulate/layout/text_key.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {

std::int64_t number_of(std::string_view key, const std::string& value, std::int64_t least,
                       std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most)
    throw UsageError(
        fmt::format("{} {}; expected a whole number from {} to {}", key, in_quotes(value), least, most));
  return number;
}

double real_of(std::string_view key, const std::string& value, double least, double most) {
  const auto number = parse_number(value);
  if (!number || !(*number >= least) || !(*number <= most))
    throw UsageError(
        fmt::format("{} {}; expected a number from {} to {}", key, in_quotes(value), least, most));
  return *number;
}

bool flag_of(std::string_view key, const std::string& value) {
  if (value == "true" || value == "yes") return true;
  if (value == "false" || value == "no") return false;
  throw UsageError(fmt::format("{} {}; expected true or false", key, in_quotes(value)));
}

std::size_t choice_of(std::string_view key, const std::string& value,
                      std::span<const std::string_view> names) {
  std::vector<std::string> known(names.begin(), names.end());
  const auto found = std::find(known.begin(), known.end(), value);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw UsageError(fmt::format("{} {}; expected one of {}{}", key, in_quotes(value), joined(known),
                               did_you_mean(value, known)));
}

}  // namespace tbdsim
