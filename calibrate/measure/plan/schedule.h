// The order in which the points of a plan are measured, and the time limit.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

// Sorts points by octave of their value, highest first, and in seeded random order within an octave, so that
// a drift of the clocks does not bias one kind of point and a run that is cut short has measured some points
// of every kind. The same seed gives the same order on every platform.
[[nodiscard]] std::vector<PlanPoint> ordered(std::vector<PlanPoint> points, std::uint64_t seed);

// A time limit in seconds, and the correction of estimates by the times that points took.
class TimeBox {
 public:
  explicit TimeBox(double seconds) : seconds_(seconds) {}  // 0 or less: no limit

  [[nodiscard]] bool fits(double guess_s, double elapsed_s) const;
  void took(double guess_s, double real_s);
  // Seconds taken / seconds estimated, damped towards 1 while few points are measured.
  [[nodiscard]] double correction() const;

 private:
  double seconds_;
  double guessed_ = 0;
  double real_ = 0;
};

}  // namespace tbdsim::measure
