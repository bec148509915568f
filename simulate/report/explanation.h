// How a prediction came about, step by step, in words and units: `tbd-sim --explain`.
#pragma once

#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Lines for people: the work, its kernels and the longest of them, the GPU's time, the iteration, throughput
// with its interval, utilization, memory. Where samples differ in length the steps are those of the length
// where most of the time goes, and the mean follows.
[[nodiscard]] std::vector<std::string> explanation(const Prediction& prediction);

}  // namespace tbdsim
