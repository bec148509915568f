// The file of a paper's observations (simulate/validation/observations/tbd.yaml describes its keys).
#pragma once

#include <filesystem>

#include "simulate/validation/observations.h"

namespace tbdsim {

// Throws UsageError or SpecError.
[[nodiscard]] Observations read_observations(const std::filesystem::path& file);

}  // namespace tbdsim
