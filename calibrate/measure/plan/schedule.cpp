#include "calibrate/measure/plan/schedule.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tbdsim::measure {
namespace {
constexpr double kDamping_s = 5;  // seconds of agreement assumed before the first point

int octave(double value) { return value > 0 ? std::ilogb(value) : std::numeric_limits<int>::min(); }
}  // namespace

std::vector<PlanPoint> ordered(std::vector<PlanPoint> points, std::uint64_t seed) {
  // Fisher-Yates by hand: std::shuffle gives each library's own order.
  std::mt19937_64 random(seed);
  for (std::size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[random() % i]);
  std::stable_sort(points.begin(), points.end(),
                   [](const PlanPoint& a, const PlanPoint& b) { return octave(a.value) > octave(b.value); });
  return points;
}

bool TimeBox::fits(double guess_s, double elapsed_s) const {
  return seconds_ <= 0 || elapsed_s + guess_s * correction() <= seconds_;
}

void TimeBox::took(double guess_s, double real_s) {
  guessed_ += guess_s;
  real_ += real_s;
}

double TimeBox::correction() const { return (real_ + kDamping_s) / (guessed_ + kDamping_s); }

}  // namespace tbdsim::measure
