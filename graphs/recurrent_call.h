// One recurrent layer in one direction as one call of cuDNN, over all of its steps.
#pragma once

#include "graphs/kernel.h"

namespace tbdsim {

// Vectors that cuDNN keeps of every step besides the output: of an LSTM the activated gates and the cell
// state (an estimate: it does not say), of a GRU r, z, n, U * h + b and another (what PyTorch allocates for
// two stacks of five layers on an H100 beside all else: 6.06 vectors a layer with the output in fp32, 6.09 in
// fp16; this project's Deep Speech 2).
inline constexpr std::int64_t kLstmKeeps = 5;
inline constexpr std::int64_t kGruKeeps = 5;

// A recurrent layer as one call takes it, in either phase.
struct FusedRecurrentLayer {
  std::string_view op;
  RecurrentShape shape;
  std::int64_t states = 1;  // carried from step to step
  std::int64_t kept = 0;    // vectors of hidden units that are kept of every step, besides the output
  MathType math = MathType::fp32;
  std::int64_t bytes = 4;  // of a number
};

// The call of the layer in this phase. All steps' products with the input are one product before the steps;
// each step reads the state's weights again. Element-wise operations on each unit are few compared with the
// products and not counted.
[[nodiscard]] Kernel recurrent_call(const FusedRecurrentLayer& layer, Phase phase);

}  // namespace tbdsim
