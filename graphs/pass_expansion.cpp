#include "graphs/pass_expansion.h"

#include <algorithm>

#include "hwspecs/base/suggest.h"

namespace tbdsim {

PassExpansion::PassExpansion(const LayerGraph& graph, Backward backward, std::int64_t repeat,
                             const LoweringContext& how, int first_layer, TrainingStep& step)
    : graph_(graph),
      backward_(backward),
      repeat_(repeat),
      how_(how),
      first_layer_(first_layer),
      step_(step),
      consumers_(graph.layers.size()),
      readers_(graph.inputs.size()),
      forward_(graph.layers.size()),
      backward_spans_(graph.layers.size()),
      gradient_sum_(graph.layers.size(), -1),
      input_sum_(graph.inputs.size(), -1),
      loss_parts_(loss_parts(graph, how.lowering)) {
  for (int i = 0; i < count(); ++i) {
    for (const int input : layer(i).inputs) {
      if (input >= 0) {
        consumers_[static_cast<std::size_t>(input)].push_back(i);
      } else {
        readers_[static_cast<std::size_t>(-1 - input)].push_back(i);
      }
    }
  }
}

LayerContext PassExpansion::site(int i) const {
  LayerContext at = layer(i).site();
  if (backward_ == Backward::inputs || backward_ == Backward::penalty) {
    at.input_gradient = layer(i).spec.layer->differentiable();
    at.weight_gradient = false;
  }
  at.differentiated = backward_ == Backward::penalty;
  return at;
}

std::vector<int> PassExpansion::gradient_readers(int i) const {
  std::vector<int> readers;
  for (const int reader : consumers(i)) {
    if (site(reader).input_gradient) readers.push_back(reader);
  }
  return readers;
}

void PassExpansion::at_layer(int i, const std::function<void()>& work) const {
  try {
    work();
  } catch (const std::overflow_error& overflow) {
    throw ModelError(layer(i).spec.mark, "layer " + in_quotes(layer(i).spec.name) + ": " + overflow.what() +
                                             "; expected a smaller layer");
  }
}

std::vector<int> PassExpansion::input_gradient_readers(std::size_t k) const {
  std::vector<int> readers;
  if (backward_ != Backward::inputs && backward_ != Backward::penalty) return readers;
  for (const int reader : readers_[k]) {
    if (site(reader).input_gradient) readers.push_back(reader);
  }
  return readers;
}

PassExpansion::Span PassExpansion::emit(int i, std::int64_t steps,
                                        const std::function<void(std::vector<Kernel>&)>& append) {
  const std::size_t before = step_.kernels.size();
  at_layer(i, [&] {
    append(step_.kernels);
    for (std::size_t k = before; k < step_.kernels.size(); ++k) {
      step_.kernels[k].layer = first_layer_ + i;
      step_.kernels[k].repeat = checked_multiply(step_.kernels[k].repeat, checked_multiply(steps, repeat_));
    }
  });
  const int first = static_cast<int>(before);
  return {first, std::max(first, static_cast<int>(step_.kernels.size()) - 1)};
}

void PassExpansion::cast_inputs(int i, Phase phase, std::vector<Kernel>& out) const {
  const auto inputs = layer(i).inputs.size();
  for (std::size_t k = 0; k < inputs; ++k) {
    if (in_fp32(i) || !in_fp32(layer(i).inputs[k])) continue;
    const Shape& shape = layer(i).input_shapes[k];
    const Size wide = elements(shape) * kFp32Bytes;
    const Size half = stored_bytes(shape, how_.precision);
    const bool forward = phase == Phase::forward;
    out.push_back(memory_kernel(KernelKind::elementwise, phase, "cast", shape, 1, forward ? wide : half,
                                forward ? half : wide));
  }
}

void PassExpansion::forward() {
  for (int i = 0; i < count(); ++i) {
    forward_[static_cast<std::size_t>(i)] = emit(i, [&](std::vector<Kernel>& out) {
      cast_inputs(i, Phase::forward, out);
      const std::size_t first = out.size();
      layer(i).spec.layer->forward(layer(i).site(), how_of(i), out);
      join_forward(loss_part(i), layer(i), how_of(i), first, out);
    });
  }
  forward_chains();
}

void PassExpansion::backward(std::int64_t additions) {
  additions_ = additions;
  for (int i = count() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const std::vector<Gradient> gradients = gradients_from(gradient_readers(i));
    const bool several = needs_gradient(i) && gathers(gradients);
    backward_spans_[at] = emit(i, [&](std::vector<Kernel>& out) {
      if (several) out.push_back(sum_of_gradients(layer(i).step_output, gradients));
      if (needs_gradient(i)) backward_of_layer(i, site(i), additions_ > 0, out);
    });
    if (several) gradient_sum_[at] = backward_spans_[at].first;
    if (site(i).weight_gradient) add_to_gradients(i, true, additions_, backward_spans_[at]);
  }
  backward_chains();
  if (backward_ != Backward::weights) sum_gradients_of_inputs();
  if (backward_ == Backward::penalty) double_backward();
}

// Where the pass goes back to the graph's inputs and several layers read one.
void PassExpansion::sum_gradients_of_inputs() {
  for (std::size_t k = 0; k < graph_.inputs.size(); ++k) {
    const std::vector<int> readers = input_gradient_readers(k);
    const std::vector<Gradient> gradients = gradients_from(readers);
    if (!gathers(gradients)) continue;
    input_sum_[k] = static_cast<int>(step_.kernels.size());
    (void)emit(readers.front(), 1, [&](std::vector<Kernel>& out) {
      out.push_back(sum_of_gradients(graph_.inputs[k].shape, gradients));
    });
  }
}

void PassExpansion::backward_of_layer(int i, const LayerContext& at, bool adds,
                                      std::vector<Kernel>& out) const {
  const std::size_t first = out.size();
  layer(i).spec.layer->backward(at, how_of(i), out);
  join_backward(loss_part(i), layer(i), how_of(i), first, out);
  if (at.input_gradient) cast_inputs(i, Phase::backward_data, out);
  if (how_.lowering.step_gradients == GradientAccumulation::added) add_step_gradients(i, at, out);
  if (adds || layer(i).steps > 1) add_in_place(first, out);
}

// Kernels that compute a parameter's gradient accumulate into that of other steps, runs or passes: they also
// read their output.
void PassExpansion::add_in_place(std::size_t first, std::vector<Kernel>& kernels) const {
  if (how_.lowering.step_gradients != GradientAccumulation::in_place) return;
  for (std::size_t k = first; k < kernels.size(); ++k) {
    Kernel& kernel = kernels[k];
    const bool makes_gradient =
        kernel.phase == Phase::backward_weights && kernel.kind != KernelKind::elementwise;
    if (makes_gradient) kernel.read_bytes += kernel.written_bytes;
  }
}

// Appends kernels that add up the gradients of tensors that every step, or several layers, read.
void PassExpansion::add_step_gradients(int i, const LayerContext& at, std::vector<Kernel>& out) const {
  const auto add = [&](Phase phase, const Shape& shape, std::int64_t element_bytes) {
    const Size bytes = elements(shape) * element_bytes;
    out.push_back(memory_kernel(KernelKind::elementwise, phase, "accumulate", shape, 1, bytes * 2, bytes));
  };
  const int owner = layer(i).tied_to;
  if (owner >= 0 && at.weight_gradient) {
    for (const ParameterTensor& shared : layer(i).spec.layer->parameters(layer(i).input_shapes)) {
      add(Phase::backward_weights, {fixed_size(shared.elements), {}},
          how_.precision.product_gradient_bytes());
    }
  }
  if (layer(i).steps > 1) {
    for (const ParameterTensor& tensor : layer(i).parameters) {
      if (at.weight_gradient && tensor.trained) {
        add(Phase::backward_weights, {fixed_size(tensor.elements), {}}, how_.precision.storage_bytes);
      }
    }
    for (std::size_t k = 0; k < layer(i).whole.size(); ++k) {
      if (at.input_gradient && layer(i).whole[k]) {
        add(Phase::backward_data, at.inputs[k], how_.precision.storage_bytes);
      }
    }
  }
}

// A product that runs in place adds to the gradient itself.
void PassExpansion::add_to_gradients(int i, bool all, std::int64_t times, Span& span) {
  if (times == 0 || how_.lowering.step_gradients != GradientAccumulation::added) return;
  for (const ParameterTensor& tensor : layer(i).parameters) {
    if (!tensor.trained || tensor.sparse) continue;  // rows are the gradient, or follow one another
    const Shape shape{fixed_size(tensor.elements), {}};
    at_layer(i, [&] {
      const Size bytes = elements(shape) * how_.precision.gradient_bytes;
      Kernel add = memory_kernel(KernelKind::elementwise, Phase::backward_weights, "accumulate", shape, 1,
                                 bytes * 2, bytes);
      add.layer = first_layer_ + i;
      add.repeat = times;
      // Beside a gradient that persists the new one is a temporary tensor.
      if (how_.lowering.weight_gradients == GradientStorage::persistent) add.scratch_bytes = bytes;
      span.last = static_cast<int>(step_.kernels.size());
      step_.kernels.push_back(add);
    });
    if (!all) return;
  }
}

std::vector<PassExpansion::Gradient> PassExpansion::gradients_from(const std::vector<int>& readers) const {
  std::vector<Gradient> gradients;
  for (const int reader : readers) {
    const Layer& type = *layer(reader).spec.layer;
    gradients.push_back({backward_of(reader).first, !type.gradient_is_view(how_.lowering), type.parts()});
  }
  return gradients;
}

bool PassExpansion::gathers(const std::vector<Gradient>& gradients) {
  return gradients.size() > 1 || (gradients.size() == 1 && gradients[0].parts > 1);
}

// Gradients of the whole are added, gradients of parts put in their places. What stands for the additions of
// kernels that add to the sum themselves (beta = 1) reads the sum, and writes nothing.
Kernel PassExpansion::sum_of_gradients(const Shape& shape, const std::vector<Gradient>& gradients) const {
  Size read;
  std::int64_t whole = 0;
  for (const Gradient& gradient : gradients) {
    read += part_bytes(shape, gradient.parts, how_.precision);
    if (gradient.parts == 1) ++whole;
  }
  const bool adds = whole > 0;
  const bool in_place = how_.lowering.branch_gradients == GradientAccumulation::in_place;
  if (in_place && whole == std::ssize(gradients)) {
    return memory_kernel(KernelKind::elementwise, Phase::backward_data, "gradient_sum", shape, whole - 1,
                         stored_bytes(shape, how_.precision) * (whole - 1), Size{});
  }
  return memory_kernel(
      KernelKind::elementwise, Phase::backward_data, adds ? "gradient_sum" : "gradient_concat", shape,
      adds ? std::max<std::int64_t>(1, whole - 1) : 0, read, stored_bytes(shape, how_.precision));
}

Size PassExpansion::part_bytes(Shape shape, std::int64_t parts, const Precision& precision) {
  if (parts > 1) shape.dims.back() /= parts;
  return stored_bytes(shape, precision);
}

}  // namespace tbdsim
