// The charts of a page as JSON, which page.js draws.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulate/report/html/page.h"

namespace tbdsim {

// A list of every chart in the order of the figures of sections_html(): the structs of page.h with numbers of
// five significant digits.
[[nodiscard]] nlohmann::ordered_json charts_json(const std::vector<Section>& sections);

}  // namespace tbdsim
