#include "calibrate/measure/statistics/throttle.h"

#include <algorithm>
#include <cassert>

namespace tbdsim::measure {

bool ThrottleWatch::due(double now_s) const {
  return fastest_s_ <= 0 || points_ >= kPointsBetween || now_s - last_at_s_ >= kSecondsBetween;
}

void ThrottleWatch::add(double reference_s, double now_s) {
  assert(reference_s > 0);
  last_s_ = reference_s;
  fastest_s_ = fastest_s_ > 0 ? std::min(fastest_s_, reference_s) : reference_s;
  last_at_s_ = now_s;
  points_ = 0;
  if (slowdown() <= kThrottled) pauses_ = 0;
}

}  // namespace tbdsim::measure
