// The chain from a scenario to a prediction: kernels -> costs -> timeline -> gradient synchronization ->
// memory.
#pragma once

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

// A pure function: reads no files. A batch that does not fit into memory still gets its hypothetical
// throughput. A cache makes many predictions of few models faster and changes no number. Throws UsageError
// where the GPU has no rate for the precision's arithmetic.
[[nodiscard]] Prediction predict(ResolvedScenario scenario, EstimateCache* cache = nullptr);

// predict(resolve(scenario), cache).
[[nodiscard]] Prediction predict(const Scenario& scenario, const Resolver& resolve,
                                 EstimateCache* cache = nullptr);

// Links of the chain, of which a re-prediction runs again what its change affects.
//
// Limits an iteration's costs by power and sets its timeline and copies.
void simulate_alone(const Prediction& prediction, Iteration& iteration);

// Gives the iteration the costs and the timeline of a rank that updates all parameters itself.
void run_alone(const Prediction& prediction, Iteration& iteration);
// Sets Iteration::input and Iteration::sync: decoding threads of one machine share its cores.
void predict_sync(Prediction& prediction);
// Sets `largest`, `memory` and `fits` from the iterations' plans.
void predict_memory(Prediction& prediction);

}  // namespace tbdsim
