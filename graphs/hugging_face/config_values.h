// Values of a config.json of Hugging Face transformers, and the parameters of a model that they become.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "graphs/captured/json_node.h"

namespace tbdsim {

// Keys of a config.json with what is in them, written to parameters of a model. Throws SpecError.
class ConfigValues {
 public:
  explicit ConfigValues(const JsonNode& config) : config_(config) {}

  [[nodiscard]] std::int64_t count(std::string_view key, std::int64_t most) const;
  // The count, or `otherwise` where the key is missing or null; 0 is one where `otherwise` is 0.
  [[nodiscard]] std::int64_t count(std::string_view key, std::int64_t most, std::int64_t otherwise) const;
  // `otherwise` where the key is missing or null.
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  [[nodiscard]] double number(std::string_view key, double otherwise) const;
  // The number that `key` of the map `map` has.
  [[nodiscard]] double number_in(std::string_view map, std::string_view key, double otherwise) const;
  [[nodiscard]] std::string text(std::string_view key, const std::string& otherwise) const;
  [[nodiscard]] bool given(std::string_view key) const;  // there, and not null
  // The number of entries of the map there; `otherwise` where there is none.
  [[nodiscard]] std::int64_t entries(std::string_view key, std::int64_t otherwise) const;
  // Throws SpecError that names the key unless `holds`.
  void require(bool holds, std::string_view key, const std::string& expected) const;

  void set(const std::string& parameter, std::int64_t value) {
    parameters_[parameter] = std::to_string(value);
  }
  void set(const std::string& parameter, const char* value) { parameters_[parameter] = value; }
  void set_flag(const std::string& parameter, bool value) {
    parameters_[parameter] = value ? "true" : "false";
  }
  [[nodiscard]] const std::map<std::string, std::string>& parameters() const { return parameters_; }

 private:
  const JsonNode& config_;
  std::map<std::string, std::string> parameters_;
};

}  // namespace tbdsim
