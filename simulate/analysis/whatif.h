// What if a GPU, a link, a framework or a model were changed: the prediction with changes, the parts of an
// iteration before and after, and upper bounds of what removing a limit gains.
#pragma once

#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The prediction of a scenario with changes. Changes without a spec are of the scenario itself
// ("precision=amp", "batch=64"). Throws UsageError, SpecError or ModelError.
[[nodiscard]] Prediction predict_changed(Scenario scenario, const SpecChanges& changes, SpecCache& specs);

// A part of the mean iteration: kernels of one kind, the GPU's idle time by its cause, or the exchange of
// gradients. The parts add up to the iteration.
struct TimePart {
  std::string name;
  Seconds before, after;
};
[[nodiscard]] std::vector<TimePart> time_parts(const Prediction& before, const Prediction& after);

// Throughput if one limit were removed: the others, and the overhead of kernels, stay.
struct UpperBound {
  std::string name;       // "infinite memory bandwidth"
  double throughput = 0;  // of the model's unit, per second
};
[[nodiscard]] std::vector<UpperBound> upper_bounds(const Prediction& prediction);

}  // namespace tbdsim
