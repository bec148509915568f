// A profile's block whose formula can be computed in the head: the gradient of a recurrent layer by its
// weights is one product, 2 gates hidden^2 batch steps flop at the whole peak, and nothing beside.
#pragma once

#include "tests/costmodel/small_gpu.h"

namespace tbdsim::test {

// 2 x 1 x 10^2 x 5 x 2 = 2000 flop: 2 s on small_gpu().
[[nodiscard]] inline RecurrentCall two_seconds() {
  return {.phase = Phase::backward_weights, .batch = 5, .steps = 2, .hidden = 10, .gates = 1};
}

// The same as a kernel.
[[nodiscard]] inline Kernel recurrent_kernel(MathType math = MathType::fp32) {
  Kernel kernel;
  kernel.kind = KernelKind::recurrent;
  kernel.phase = Phase::backward_weights;
  kernel.math = math;
  kernel.shape = RecurrentShape{.batch = fixed_size(5), .steps = 2, .inputs = 0, .hidden = 10, .gates = 1};
  kernel.flops = fixed_size(2000);
  return kernel;
}

[[nodiscard]] inline ProfileBlock recurrent_block(const std::string& generation = "cudnn6",
                                                  MathType math = MathType::fp32, bool own = true) {
  ProfileBlock block;
  block.generation = generation;
  block.math = math;
  block.own = own;
  block.parameters.assign(kParameterCount<RecurrentFamily>, 1);
  block.parameters[RecurrentFamily::kCall] = 0;
  block.kriging = {.amplitude = 0.3, .length = 2, .nugget = 0.04};
  block.interval = kEightyPercent;
  return block;
}

// With the residual of a call.
[[nodiscard]] inline ProfileBlock with_residual(ProfileBlock block, const RecurrentCall& call,
                                                double residual) {
  block.measured = {call};
  block.residuals = ResidualTable({{RecurrentFamily::features(call), residual, 0}});
  return block;
}

[[nodiscard]] inline Profile with_blocks(std::vector<ProfileBlock> blocks) {
  Profile profile = small_profile();
  profile.families[index_of_family<RecurrentFamily>()] = std::move(blocks);
  return profile;
}

}  // namespace tbdsim::test
