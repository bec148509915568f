// In which order the points of a plan are measured, and which of them still fit into the time given.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

// Most valuable first: by octave of the value, and in seeded random order within an octave, so that a drift
// of the clocks does not fall on one kind of point and a run that is cut short has seen a bit of everything.
// The same seed gives the same order on every platform.
[[nodiscard]] std::vector<PlanPoint> ordered(std::vector<PlanPoint> points, std::uint64_t seed);

// A budget in seconds, and the correction of guesses by what points really took.
class TimeBox {
 public:
  explicit TimeBox(double seconds) : seconds_(seconds) {}  // 0 or less: no limit

  [[nodiscard]] bool fits(double guess_s, double elapsed_s) const;
  void took(double guess_s, double real_s);
  // Seconds the points took over the seconds guessed, damped towards 1 while there are few.
  [[nodiscard]] double correction() const;

 private:
  double seconds_;
  double guessed_ = 0;
  double real_ = 0;
};

}  // namespace tbdsim::measure
