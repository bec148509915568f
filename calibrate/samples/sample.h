// A measured call of one family, ready for fitting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

template <class Family>
struct Sample {
  typename Family::Call call;
  Hardware hardware;
  PowerLimit unmeasured{};  // what the expected clock includes of it: hardware.h, limit_of_unmeasured
  std::string gpu;          // stem of its file in hwspecs/gpus
  std::string block;        // library generation and arithmetic, "cudnn6/fp32": what parameters are shared by
  std::string set;          // the data set: what a measured clock goes with
  std::string shape;        // identity of the call without its phase: what a fold keeps together
  std::string layer;        // the shape at any batch
  std::string phase;        // forward, ... or the op: what errors are grouped by
  double time_s = 0;
  double sigma = 0.04;  // expected relative error of the measurement
  bool floor = false;   // timed from an idle stream: holds a launch floor, a nuisance of its GPU and op
  std::string op;       // floors are shared by
  Features features;
};

}  // namespace tbdsim
