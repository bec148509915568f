// Ways to make a batch fit, with the time they cost. Each goes through the same chain of kernels, costs,
// timeline and memory plan as the prediction, for the length that needs most memory.
#pragma once

#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

struct Saving {
  std::string name;   // "recompute"
  std::string what;   // a description
  Bytes total;        // on the device
  Seconds time;       // of an iteration
  bool fits = false;  // into the GPU's memory
};

// The prediction without changes first, then the savings that need less memory:
//
//   workspace        only convolution algorithms without workspace
//   in_place         activations written over their inputs
//   half_maps        feature maps stored in 2 B between forward and backward pass
//   recompute        feature maps of about sqrt(n) segments stored, the others recomputed (checkpointing)
//   recompute_steps  unrolled layers recomputed step by step where the model has a parameter `recompute`:
//                    the hidden layer of Seq2Seq's attention (Zheng et al., "Echo", ISCA 2020)
//   offload          feature maps on the host between forward and backward pass. Copies run one after
//                    another beside the kernels at the rate of the bus; the backward pass begins when all
//                    are out, a kernel waits for the maps it reads
//   accumulate_2, accumulate_4   gradients of 2 or 4 parts of the batch accumulated before an update
[[nodiscard]] std::vector<Saving> remedies(const Prediction& prediction);

// Savings in bytes by options of the run, alone and together ("--recompute full"): predictions of the
// scenario with each, where the model can have it and needs less memory.
[[nodiscard]] std::vector<Saving> options_that_save(const Prediction& prediction, const Resolver& resolve);

}  // namespace tbdsim
