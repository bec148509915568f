#include "simulate/serve/request_target.h"

#include <algorithm>
#include <charconv>

namespace tbdsim {
namespace {

// "a%3D1" -> "a=1"; a '%' that begins no escape is unchanged.
std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      plain += static_cast<char>(code);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string form_decoded(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return percent_decoded(spaced);
}

}  // namespace

std::string path_of(std::string_view target) { return percent_decoded(target.substr(0, target.find('?'))); }

QueryParameters parameters_of(std::string_view target) {
  QueryParameters parameters;
  std::size_t at = target.find('?');
  while (at < target.size()) {
    const std::size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string_view part = target.substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (!part.empty()) parameters.emplace_back(form_decoded(part.substr(0, equals)), form_decoded(value));
    at = end;
  }
  return parameters;
}

}  // namespace tbdsim
