// Predicts the points of a sweep one by one.
#pragma once

#include <cstdint>
#include <memory>

#include "simulate/sweep/sweep.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Points that follow one another share work: where only rates of the GPU or the cluster change, the rest is
// kept. The result of a point does not depend on the points before it.
class PointPredictor {
 public:
  // Both must outlive it.
  PointPredictor(const Sweep& sweep, SpecCache& specs);
  ~PointPredictor();
  PointPredictor(PointPredictor&&) noexcept;

  [[nodiscard]] SweepPoint at(std::int64_t point);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tbdsim
