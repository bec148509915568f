// Time, rent and energy until a decoder that is divided over a cluster reaches a target quality.
#pragma once

#include <optional>

#include "graphs/convergence.h"
#include "simulate/plan/step_time.h"
#include "simulate/prediction/energy.h"

namespace tbdsim {

struct LayoutTarget {
  double steps = 0;
  Seconds startup, training;
  Seconds evaluation;           // of all, as forward passes
  std::optional<Dollars> cost;  // none where the GPU's file has no rent
  Energy energy;

  [[nodiscard]] Seconds total() const { return startup + training + evaluation; }
};

// A run of so many epochs at the global batch of the job.
[[nodiscard]] LayoutTarget target_of_layout(const LayoutPrediction& layout, const PlanInputs& inputs,
                                            const Convergence& to, double epochs);

}  // namespace tbdsim
