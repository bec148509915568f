// Changes of a GPU, a link, a framework or a model: the prediction with them, the parts of an iteration
// before and after, and upper bounds of the throughput with a limit removed.
#pragma once

#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

// The prediction of a scenario with changes. Changes without a spec are of the scenario itself
// ("precision=amp", "batch=64"). Throws UsageError, SpecError or ModelError.
[[nodiscard]] Prediction predict_changed(Scenario scenario, const SpecChanges& changes,
                                         const Resolver& resolve);

// A part of the mean iteration: kernels of one kind, the GPU's idle time by its cause, or the exchange of
// gradients. The parts add up to the iteration.
struct TimePart {
  std::string name;
  Seconds before, after;
};
[[nodiscard]] std::vector<TimePart> time_parts(const Prediction& before, const Prediction& after);

// Throughput if one limit were removed: the others, and the overhead of kernels, are unchanged.
struct UpperBound {
  std::string name;       // "infinite memory bandwidth"
  double throughput = 0;  // of the model's unit, per second
};
[[nodiscard]] std::vector<UpperBound> upper_bounds(const Prediction& prediction);

}  // namespace tbdsim
