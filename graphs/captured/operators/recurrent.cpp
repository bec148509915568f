// Recurrent layers in cuDNN's one call: all steps, layers and directions; and PyTorch's single cells.
//
//   aten._cudnn_rnn           (input, weights, ..., 6: mode, hidden, projected, layers, batch first, dropout,
//                             train, bidirectional, samples of each step of a packed sequence, ...)
//   aten._cudnn_rnn_backward  the same, with mode at 10
//
// The input of a packed sequence has a row for each sample of each step, and all samples have the first step.
// It is charged as all of them over the mean number of steps, rounded up: the rows divided by the samples.
#include <algorithm>

#include "graphs/captured/operators/operators.h"
#include "graphs/recurrent_call.h"

namespace tbdsim {
namespace {

// cudnnRNNMode_t: 0 ReLU, 1 tanh, 2 LSTM, 3 GRU.
constexpr std::array<std::int64_t, 4> kGates = {1, 1, 4, 3};
constexpr std::array<std::string_view, 4> kNames = {"rnn_relu", "rnn_tanh", "lstm", "gru"};

struct Network {
  std::string_view op;
  std::int64_t gates = 0, hidden = 0, layers = 0, directions = 0;
  Size batch;
  std::int64_t steps = 0, inputs = 0;
  bool packed = false;
  std::int64_t bytes = 0;  // of a number
  MathType math = MathType::fp32;
};

struct Sequence {
  Size samples;
  std::int64_t steps = 0;
};

Sequence sequence_of(const OperatorSite& site, const CapturedTensor& x, std::size_t mode) {
  if (x.shape.size() == 2) {
    const std::vector<Size> samples = site.sizes(mode + 8);
    const Size rows = x.shape[0], batch = samples.empty() ? Size{} : samples[0];
    const bool grows = batch.per_sample > 0;
    const std::int64_t all = grows ? rows.per_sample : rows.fixed,
                       each = grows ? batch.per_sample : batch.fixed;
    if (each < 1 || all < each) site.fail(mode + 8, "the samples of each step, which are the input's rows");
    return {batch, all / each + (all % each == 0 ? 0 : 1)};
  }
  if (x.shape.size() != 3) site.fail(0, "steps x samples x features");
  const bool batch_first = site.flag(mode + 4);
  return {x.shape[batch_first ? 0 : 1], site.fixed(x.shape[batch_first ? 1 : 0])};
}

Network network_of(const OperatorSite& site, std::size_t mode) {
  const CapturedTensor& x = site.tensor(0);
  const Sequence sequence = sequence_of(site, x, mode);
  const std::int64_t kind = site.whole(mode);
  if (kind < 0 || kind > 3) site.fail(mode, "0 to 3");
  Network n{.op = kNames[static_cast<std::size_t>(kind)],
            .gates = kGates[static_cast<std::size_t>(kind)],
            .hidden = site.whole(mode + 1),
            .layers = site.whole(mode + 3),
            .directions = site.flag(mode + 7) ? 2 : 1,
            .batch = sequence.samples,
            .steps = sequence.steps,
            .inputs = site.fixed(x.shape.back()),
            .packed = x.shape.size() == 2,
            .bytes = bytes_of(x.dtype),
            .math = math_of(x.dtype, site.how.precision.convolution_math())};
  constexpr std::int64_t kMostLayers = 1'000;
  if (n.layers < 1 || n.layers > kMostLayers) site.fail(mode + 3, "1 to 1000 layers");
  if (n.hidden < 1) site.fail(mode + 1, "at least one unit");
  return n;
}

Kernel call(const Network& n, std::int64_t inputs, Phase phase) {
  return recurrent_call({.op = n.op,
                         .shape = {.batch = n.batch,
                                   .steps = n.steps,
                                   .inputs = inputs,
                                   .hidden = n.hidden,
                                   .gates = n.gates,
                                   .alone = n.layers == 1 && n.directions == 1 && !n.packed},
                         .states = n.gates == 4 ? 2 : 1,  // an LSTM carries its cells, too
                         .kept = n.gates == 4   ? kLstmKeeps
                                 : n.gates == 3 ? kGruKeeps
                                                : 0,
                         .math = n.math,
                         .bytes = n.bytes},
                        phase);
}

// The first layer reads the input, the others what both directions of the one before put out.
std::int64_t inputs_of(const Network& n, std::int64_t layer) {
  return layer == 0 ? n.inputs : checked_multiply(n.directions, n.hidden);
}

}  // namespace

void lower_recurrent(OperatorSite& site) {
  const Network n = network_of(site, 6);
  for (std::int64_t i = 0; i < n.layers * n.directions; ++i)
    site.emit(call(n, inputs_of(n, i / n.directions), site.phase));
}

void lower_recurrent_backward(OperatorSite& site) {
  const Network n = network_of(site, 10);
  for (const Phase phase : {Phase::backward_data, Phase::backward_weights}) {
    for (std::int64_t i = n.layers * n.directions; i-- > 0;)
      site.emit(call(n, inputs_of(n, i / n.directions), phase));
  }
}

// One kernel between gates and state (aten/native/cuda/RNN.cu). Backward a sum over the samples follows for
// each gradient of biases: the i-th vector among the results is that of the i-th result.
void lower_recurrent_cell(OperatorSite& site) {
  std::vector<const CapturedTensor*> matrices, vectors;
  for (const CapturedTensor* output : site.all_outputs())
    (output->shape.size() == 1 ? vectors : matrices).push_back(output);
  if (matrices.empty()) return;
  const CapturedTensor& gates = *matrices.front();
  const CapturedTensor& widest = **std::ranges::max_element(
      matrices, {}, [](const CapturedTensor* tensor) { return tensor->elements.at(2); });
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, widest.elements,
                         site.entry.flops, bytes_of(site.all_tensors()), bytes_of(matrices),
                         bytes_of(gates.dtype)));
  for (std::size_t i = 0; i < std::min(vectors.size(), matrices.size()); ++i) {
    const CapturedTensor& from = *matrices[i];
    Kernel sum = bytes_kernel(KernelKind::reduction, site.phase, "sum", from.elements, 1, bytes_of(from),
                              bytes_of(*vectors[i]), bytes_of(from.dtype));
    sum.shape = MatrixShape{from.shape.front(), site.fixed(from.shape.back())};
    sum.access = Access::columns;
    site.emit(std::move(sum));
  }
}

}  // namespace tbdsim
