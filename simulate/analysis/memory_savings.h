// What would make a batch fit, and what it costs: each remedy goes through the same chain of kernels, costs,
// timeline and memory plan as the prediction, for the length that needs most memory.
#pragma once

#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

struct Saving {
  std::string name;
  std::string what;
  Bytes total;   // on the device
  Seconds time;  // of an iteration
  bool fits = false;
};

// The first is the prediction as it is. Then those that take less:
//   workspace      only algorithms without scratch memory
//   in_place       activations over their inputs
//   half_maps      feature maps in 2 B between forward and backward pass
//   recompute      feature maps of about sqrt(n) segments only, the others made again
//   recompute_steps  what a model's parameter `recompute` lets its unrolled layers make again, step by step:
//                  the hidden layer of Seq2Seq's attention (Zheng et al., "Echo", ISCA 2020)
//   offload        feature maps on the host between forward and backward pass. Copies run one after another
//                  beside the kernels at the rate of the bus; the backward pass begins when all are out, a
//                  kernel waits for the maps it reads
//   accumulate_2, accumulate_4   the gradients of 2 or 4 parts of the batch added up before an update
[[nodiscard]] std::vector<Saving> remedies(const Prediction& prediction);

}  // namespace tbdsim
