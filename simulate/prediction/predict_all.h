// Many predictions at a time, on every core.
#pragma once

#include <span>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"
#include "simulate/prediction/scenario.h"

namespace tbdsim {

// One prediction for each scenario, in their order. Throws what predict() throws for the first scenario that
// has an error.
[[nodiscard]] std::vector<Prediction> predict_all(std::span<const Scenario> scenarios,
                                                  const Resolver& resolve);

}  // namespace tbdsim
