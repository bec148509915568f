// Many predictions at a time, on every core.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"
#include "simulate/prediction/scenario.h"

namespace tbdsim {

// Calls work(0) to work(count - 1), several at a time. When all are done, rethrows the error of the lowest
// index.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work);

// One prediction for each scenario, in their order. Throws what predict() throws for the first scenario that
// has an error.
[[nodiscard]] std::vector<Prediction> predict_all(std::span<const Scenario> scenarios,
                                                  const Resolver& resolve);

}  // namespace tbdsim
