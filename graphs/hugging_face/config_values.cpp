#include "graphs/hugging_face/config_values.h"

#include <fmt/format.h>

namespace tbdsim {

bool ConfigValues::given(std::string_view key) const {
  return config_.has(key) && !config_.at(key).is_null();
}

std::int64_t ConfigValues::count(std::string_view key, std::int64_t most) const {
  if (!given(key)) config_.fail(fmt::format("a key {}", key));
  return config_.at(key).whole(1, most);
}

std::int64_t ConfigValues::count(std::string_view key, std::int64_t most, std::int64_t otherwise) const {
  return given(key) ? config_.at(key).whole(otherwise > 0 ? 1 : 0, most) : otherwise;
}

bool ConfigValues::flag(std::string_view key, bool otherwise) const {
  return given(key) ? config_.at(key).flag() : otherwise;
}

double ConfigValues::number(std::string_view key, double otherwise) const {
  return given(key) ? config_.at(key).number() : otherwise;
}

double ConfigValues::number_in(std::string_view map, std::string_view key, double otherwise) const {
  if (!given(map)) return otherwise;
  const JsonNode within = config_.at(map);
  if (!within.is_map()) within.fail("a map");
  return within.has(key) && !within.at(key).is_null() ? within.at(key).number() : otherwise;
}

std::string ConfigValues::text(std::string_view key, const std::string& otherwise) const {
  constexpr std::size_t kMostBytes = 200;
  return given(key) ? config_.at(key).text(kMostBytes) : otherwise;
}

std::int64_t ConfigValues::entries(std::string_view key, std::int64_t otherwise) const {
  if (!given(key)) return otherwise;
  if (!config_.at(key).is_map()) config_.at(key).fail("a map");
  return static_cast<std::int64_t>(config_.at(key).size());
}

void ConfigValues::require(bool holds, std::string_view key, const std::string& expected) const {
  if (holds) return;
  if (given(key)) config_.at(key).fail(expected);
  config_.fail(fmt::format("{}: {}", key, expected));
}

}  // namespace tbdsim
