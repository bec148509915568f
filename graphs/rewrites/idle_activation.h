// Activations between the forward and the backward pass: tensors that nothing reads for a while.
#pragma once

#include "graphs/training_step.h"

namespace tbdsim {

// True for an activation that the backward pass reads again.
[[nodiscard]] inline bool is_idle_between_passes(const Tensor& tensor) {
  return tensor.first_again >= 0 && tensor.bytes != Size{};
}

// One of the tensor's equal allocations. A recurrence that runs step by step copies its activations one step
// at a time, so that the GPU holds one of them outside the time in between.
[[nodiscard]] inline Tensor one_piece_of(Tensor tensor) {
  tensor.bytes = {tensor.bytes.fixed / tensor.pieces, tensor.bytes.per_sample / tensor.pieces};
  tensor.pieces = 1;
  return tensor;
}

}  // namespace tbdsim
