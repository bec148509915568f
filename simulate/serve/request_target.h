// The target of an HTTP request, "/report?gpu=t4&batch=8": its path and the parameters of its query.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tbdsim {

// Key and value of each parameter, in the order of the query; a key may come several times.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

// The part before '?', percent-decoded.
[[nodiscard]] std::string path_of(std::string_view target);

// The parts between '&' behind '?', percent-decoded, with '+' for a space. A value begins after the first '='
// and may contain further ones; a part without one has an empty value.
[[nodiscard]] QueryParameters parameters_of(std::string_view target);

}  // namespace tbdsim
