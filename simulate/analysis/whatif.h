// What if a card, a link, a framework, a model said something else: before and after, where the difference
// comes from, how far each part could be improved at all, and which number of the hardware matters most.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The prediction of a scenario with changes. Changes without a spec are of the scenario itself
// ("precision=amp", "batch=64"). Throws UsageError, SpecError or ModelError.
[[nodiscard]] Prediction predict_changed(Scenario scenario, const SpecChanges& changes, SpecCache& specs);

// A part of the mean iteration: kernels of a kind; the GPU waits for the CPU, for copies, for samples; it
// waits for other GPUs or is slowed by what they exchange. Parts add up to the iteration.
struct TimePart {
  std::string name;
  Seconds before, after;
};
[[nodiscard]] std::vector<TimePart> time_parts(const Prediction& before, const Prediction& after);

// Throughput if one limit were gone. Kernels keep their start-up, and what the other limits say.
struct UpperBound {
  std::string name;  // "infinite memory bandwidth"
  double throughput = 0;
};
[[nodiscard]] std::vector<UpperBound> upper_bounds(const Prediction& prediction);

// A number of the card, of its bus or of the framework's CPU side, as its file has it; of several GPUs also
// of the links and the processors of their machines and of what joins these.
struct Sensitivity {
  std::string key;    // "gpu.memory_bandwidth"
  std::string value;  // "547.6 GB/s"
  double
      elasticity;  // d ln throughput / d ln value, from a value larger by 1 %, or by one where it is a count
  double if_doubled;  // throughput then over throughput now
};
// Those that matter first. Numbers that a reader refuses to be changed alone are left out.
[[nodiscard]] std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Prediction& prediction,
                                                     SpecCache& specs);

}  // namespace tbdsim
