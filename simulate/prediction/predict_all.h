// Many predictions at a time, on every core.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/scenario.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// One prediction for each scenario, in their order. Throws what predict() throws for the first scenario that
// has an error.
[[nodiscard]] std::vector<Prediction> predict_all(std::span<const Scenario> scenarios, SpecCache& specs);

// Reads the files of the models, the GPU and its profile into the cache, several at a time. Errors are left
// to the next look-up.
void read_all(std::span<const std::string> models, const std::string& gpu, const std::string& profile,
              SpecCache& specs);

}  // namespace tbdsim
