#include "graphs/recurrent_call.h"

namespace tbdsim {
namespace {

// Scratch memory of a call of one layer in bytes: its weights, vectors of hidden units of every step (two of
// a GRU, four of an LSTM) and of one (one, six), and 8 MiB. To the byte what cuDNN 9.19 asks for on an H100
// in fp32 and half precision (this project's kernels.csv, workspace_bytes: 16 and 64 sequences, GRUs of 735
// steps, LSTMs of 25).
Size scratch_of(const FusedRecurrentLayer& layer, const Size& weights) {
  constexpr std::int64_t kLstm = 4, kFixed = 8 << 20;
  const RecurrentShape& s = layer.shape;
  const bool lstm = s.gates == kLstm;
  const std::int64_t vectors = checked_add(checked_multiply(s.steps, lstm ? 4 : 2), lstm ? 6 : 1);
  return weights + s.batch * checked_multiply(vectors, checked_multiply(s.hidden, layer.bytes)) +
         fixed_size(kFixed);
}

}  // namespace

Kernel recurrent_call(const FusedRecurrentLayer& layer, Phase phase) {
  const RecurrentShape& s = layer.shape;
  const std::int64_t gates = checked_multiply(s.gates, s.hidden);
  const Size vectors = s.batch * checked_multiply(s.steps, layer.bytes);
  const Size x = vectors * s.inputs;
  const Size y = vectors * s.hidden;
  const Size g = vectors * gates;  // of all gates, before activation, or their gradients
  const Size kept = y * layer.kept;
  const Size input_weights = fixed_size(checked_multiply(checked_multiply(s.inputs, gates), layer.bytes));
  const Size state_weights = fixed_size(checked_multiply(checked_multiply(s.hidden, gates), layer.bytes));
  Kernel kernel;
  kernel.kind = KernelKind::recurrent;
  kernel.phase = phase;
  kernel.op = layer.op;
  kernel.math = layer.math;
  kernel.element_bytes = layer.bytes;
  kernel.macs = s.batch * checked_multiply(s.steps, checked_multiply(gates, checked_add(s.inputs, s.hidden)));
  kernel.flops = kernel.macs * 2;
  if (phase == Phase::forward) {
    kernel.read_bytes = x + g + y * layer.states + input_weights + state_weights * s.steps;
    kernel.written_bytes = g + kept + y;
  } else if (phase == Phase::backward_data) {
    kernel.read_bytes = y + kept + g + y * layer.states + input_weights + state_weights * s.steps;
    kernel.written_bytes = g + x;
  } else {
    kernel.read_bytes = x + y + g * 2;
    kernel.written_bytes = input_weights + state_weights;
  }
  kernel.scratch_bytes = scratch_of(layer, input_weights + state_weights);
  kernel.shape = s;
  return kernel;
}

}  // namespace tbdsim
