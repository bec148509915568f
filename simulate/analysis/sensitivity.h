// How much each number of the hardware and of the launch model matters.
#pragma once

#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

// A number in the file of the GPU, of its bus or of the framework's launch model; of several GPUs also of the
// links and processors of their machines, and of the network between these.
struct Sensitivity {
  std::string key;    // "gpu.memory_bandwidth"
  std::string value;  // "547.6 GB/s"
  // d ln(throughput) / d ln(value), from a value larger by 1 %, or larger by one for counts.
  double elasticity;
  double if_doubled;  // throughput with twice the value over throughput now
};
// The largest elasticity first. Numbers that a reader refuses to be changed alone are left out.
[[nodiscard]] std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Prediction& prediction,
                                                     const Resolver& resolve);

}  // namespace tbdsim
