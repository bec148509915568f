// Predicts the points of a sweep one by one.
#pragma once

#include <cstdint>
#include <memory>

#include "simulate/sweep/step_caches.h"
#include "simulate/sweep/sweep.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Points that follow one another share work: where only rates of the GPU or the cluster change, the rest is
// kept. The result of a point does not depend on the points before it.
class PointPredictor {
 public:
  // Sweep and specs must outlive it. Predictors of several threads share `steps`; without them it has its
  // own.
  PointPredictor(const Sweep& sweep, SpecCache& specs, std::shared_ptr<StepCaches> steps = nullptr);
  ~PointPredictor();
  PointPredictor(PointPredictor&&) noexcept;

  [[nodiscard]] SweepPoint at(std::int64_t point);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tbdsim
