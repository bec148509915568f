#include "graphs/layers/recurrent.h"

#include <algorithm>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostUnits = 10'000'000;

std::int64_t steps_of(const LayerContext& site) { return site.output.dims[0]; }

}  // namespace

RecurrentLayer::RecurrentLayer(const Cell& cell, SpecMap& keys)
    : cell_(cell), hidden_(keys.at("hidden").count(1, kMostUnits)) {
  if (const auto feed = keys.find("feed")) fed_ = feed->count(1, kMostUnits);
  if (const auto biases = keys.find("biases")) biases_ = biases->count(1, 2);
  if (const auto reverse = keys.find("reverse")) (void)reverse->flag();  // changes the order, not the costs
  if (const auto alone = keys.find("alone")) alone_ = alone->flag();
  if (const auto recurrence = keys.find("recurrence"))
    recurrence_ = static_cast<Recurrence>(recurrence->one_of(kRecurrenceNames));
}

void RecurrentLayer::require_sequences(std::span<const Shape> inputs, std::size_t sequences) const {
  const auto most = sequences + static_cast<std::size_t>(cell_.states);
  if (inputs.size() < sequences || inputs.size() > most) {
    throw ShapeMismatch("has " + std::to_string(inputs.size()) + " inputs; expected " +
                        std::to_string(sequences) + " to " + std::to_string(most));
  }
  require_same_rows(inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::int64_t>& dims = inputs[i].dims;
    if (i < sequences ? dims.size() != 2 || dims[0] != inputs[0].dims[0] : dims != std::vector{hidden_}) {
      throw ShapeMismatch("input has shape " + to_text(inputs[i]) + "; expected " +
                          (i < sequences ? "steps x features, the same steps for all"
                                         : std::to_string(hidden_) + ", a state of the layer"));
    }
  }
}

std::int64_t RecurrentLayer::width(std::span<const Shape> inputs) const {
  return checked_add(inputs[0].dims[1], fed_);
}

Shape RecurrentLayer::output_shape(std::span<const Shape> inputs) const {
  require_sequences(inputs, 1);
  return {inputs[0].rows, {inputs[0].dims[0], hidden_}};
}

std::vector<ParameterTensor> RecurrentLayer::parameters(std::span<const Shape> inputs) const {
  const std::int64_t gates = checked_multiply(cell_.gates, hidden_);
  const std::int64_t of_input = checked_multiply(width(inputs), gates);
  const std::int64_t of_state = checked_multiply(hidden_, gates);
  if (biases_ == 1)
    return {{"weight", checked_add(of_input, of_state), true, true}, {"bias", gates, true, true}};
  return {{"input_weight", of_input, true, true},
          {"state_weight", of_state, true, true},
          {"input_bias", gates, true, true},
          {"state_bias", gates, true, true}};
}

bool RecurrentLayer::fused(const Lowering& lowering) const {
  return fits_library() && recurrence_.value_or(lowering.recurrence) == Recurrence::fused;
}

void RecurrentLayer::forward(const LayerContext& site, const LoweringContext& how,
                             std::vector<Kernel>& kernels) const {
  if (fused(how.lowering)) {
    kernels.push_back(library_call(site, how, Phase::forward));
    return;
  }
  const std::size_t first = kernels.size();
  CellStep step(site.output.rows, how, kernels);
  step_forward(site, step);
  for (std::size_t k = first; k < kernels.size(); ++k) kernels[k].repeat = steps_of(site);
}

void RecurrentLayer::backward(const LayerContext& site, const LoweringContext& how,
                              std::vector<Kernel>& kernels) const {
  if (fused(how.lowering)) {
    kernels.push_back(library_call(site, how, Phase::backward_data));
    if (site.weight_gradient) kernels.push_back(library_call(site, how, Phase::backward_weights));
    return;
  }
  const std::size_t first = kernels.size();
  CellStep step(site.output.rows, how, kernels);
  step_backward(site, step);
  for (std::size_t k = first; k < kernels.size(); ++k) kernels[k].repeat = steps_of(site);
}

BackwardNeeds RecurrentLayer::backward_needs(const LayerContext& site, const LoweringContext& how) const {
  const Size vector = site.output.rows * checked_multiply(steps_of(site), how.precision.storage_bytes);
  if (fused(how.lowering)) {
    return {.inputs = site.weight_gradient,
            .output = true,
            .extra_bytes = vector * hidden_ * cell_.kept,
            .library_state = true};
  }
  const Kept kept = kept_by_step(site, how.lowering);
  const std::int64_t vectors = std::max<std::int64_t>(1, kept.width / hidden_);  // of each step
  return {.inputs = kept.inputs,
          .output = kept.output,
          .extra_bytes = vector * kept.width,
          .extra_pieces = checked_multiply(steps_of(site), vectors)};
}

std::int64_t RecurrentLayer::output_pieces(const LayerContext& site, const Lowering& lowering) const {
  return fused(lowering) ? 1 : steps_of(site);
}

Kernel RecurrentLayer::library_call(const LayerContext& site, const LoweringContext& how, Phase phase) const {
  return recurrent_call({.op = cell_.op,
                         .shape = {.batch = site.output.rows,
                                   .steps = steps_of(site),
                                   .inputs = width(site.inputs),
                                   .hidden = hidden_,
                                   .gates = cell_.gates,
                                   .alone = alone_},
                         .states = cell_.states,
                         .kept = cell_.kept,
                         .math = how.precision.convolution_math(),
                         .bytes = how.precision.storage_bytes},
                        phase);
}

}  // namespace tbdsim
