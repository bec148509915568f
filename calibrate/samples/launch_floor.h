// The time between two events around one call on an idle stream, as a function of the kernel's own time.
//
//   shown = floor + (kernel^4 + s^4)^(1/4) - s,   s = 15 us
//
// shown, kernel in seconds. `floor` is the time of an empty kernel: its launch, and the time s in which the
// host submits the second event, which a kernel longer than s hides. s: 13-16 us in every leave-one-GPU-out
// fit of NeuSight's element-wise table (7 GPUs, PyTorch 2.1).
#pragma once

#include <algorithm>
#include <cmath>

namespace tbdsim {

inline constexpr double kEventSubmission = 15e-6;  // s

[[nodiscard]] inline double past_submission(double kernel) {
  const double a = kernel * kernel, b = kEventSubmission * kEventSubmission;
  return std::sqrt(std::sqrt(a * a + b * b));
}

[[nodiscard]] inline double shown_time(double kernel, double floor) {
  return floor + past_submission(kernel) - kEventSubmission;
}

// d shown / d kernel.
[[nodiscard]] inline double shown_slope(double kernel) {
  const double ratio = kernel / past_submission(kernel);
  return ratio * ratio * ratio;
}

// The floor for which shown_time(kernel, floor) == shown.
[[nodiscard]] inline double floor_behind(double shown, double kernel) {
  return shown - (past_submission(kernel) - kEventSubmission);
}

// The kernel's time for which shown_time(kernel, floor) == shown; 0 below the floor.
[[nodiscard]] inline double kernel_behind(double shown, double floor) {
  const double a = std::max(shown - floor, 0.0) + kEventSubmission;
  const double b = kEventSubmission;
  return std::sqrt(std::sqrt(a * a * a * a - b * b * b * b));
}

}  // namespace tbdsim
