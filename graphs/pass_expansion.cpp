#include "graphs/pass_expansion.h"

#include <algorithm>

#include "hwspecs/base/suggest.h"

namespace tbdsim {

PassExpansion::PassExpansion(const LayerGraph& graph, Backward backward, std::int64_t repeat,
                             const Expansion& how, int first_layer, TrainingStep& step)
    : graph_(graph),
      backward_(backward),
      repeat_(repeat),
      how_(how),
      first_layer_(first_layer),
      step_(step),
      consumers_(graph.layers.size()),
      forward_(graph.layers.size()),
      backward_spans_(graph.layers.size()),
      double_backward_spans_(graph.layers.size()),
      gradient_sum_(graph.layers.size(), -1) {
  for (int i = 0; i < count(); ++i) {
    for (const int input : layer(i).inputs) {
      if (input >= 0) consumers_[static_cast<std::size_t>(input)].push_back(i);
    }
  }
}

LayerSite PassExpansion::site(int i) const {
  LayerSite at = layer(i).site();
  if (backward_ == Backward::inputs || backward_ == Backward::penalty) {
    at.input_gradient = layer(i).spec.layer->differentiable();
    at.weight_gradient = false;
  }
  return at;
}

std::vector<int> PassExpansion::gradient_readers(int i) const {
  std::vector<int> readers;
  for (const int reader : consumers(i)) {
    if (site(reader).input_gradient) readers.push_back(reader);
  }
  return readers;
}

template <class Emit>
PassExpansion::Span PassExpansion::emit(int i, Emit append) {
  const std::size_t before = step_.kernels.size();
  append(step_.kernels);
  for (std::size_t k = before; k < step_.kernels.size(); ++k) {
    step_.kernels[k].layer = first_layer_ + i;
    step_.kernels[k].repeat =
        checked_multiply(step_.kernels[k].repeat, checked_multiply(layer(i).steps, repeat_));
  }
  const int first = static_cast<int>(before);
  return {first, std::max(first, static_cast<int>(step_.kernels.size()) - 1)};
}

void PassExpansion::forward() {
  for (int i = 0; i < count(); ++i) {
    forward_[static_cast<std::size_t>(i)] =
        emit(i, [&](std::vector<Kernel>& out) { layer(i).spec.layer->forward(layer(i).site(), how_, out); });
  }
}

void PassExpansion::backward() {
  for (int i = count() - 1; i >= 0; --i) {
    const bool several_gradients = needs_gradient(i) && gathers_gradients(i);
    const Span span = emit(i, [&](std::vector<Kernel>& out) {
      if (several_gradients) out.push_back(sum_of_gradients(i));
      if (needs_gradient(i)) backward_of_layer(i, site(i), out);
    });
    backward_spans_[static_cast<std::size_t>(i)] = span;
    if (several_gradients) gradient_sum_[static_cast<std::size_t>(i)] = span.first;
  }
  if (backward_ == Backward::penalty) double_backward();
}

void PassExpansion::backward_of_layer(int i, const LayerSite& at, std::vector<Kernel>& out) const {
  layer(i).spec.layer->backward(at, how_, out);
  if (how_.lowering.step_gradients == StepGradients::added) add_step_gradients(i, at, out);
}

// What every step, or several layers, read gets a gradient from each of them; kernels add it up.
void PassExpansion::add_step_gradients(int i, const LayerSite& at, std::vector<Kernel>& out) const {
  const auto add = [&](Phase phase, const Shape& shape, std::int64_t element_bytes) {
    const Size bytes = elements(shape) * element_bytes;
    out.push_back(memory_kernel(KernelKind::elementwise, phase, "accumulate", shape, 1, bytes * 2, bytes));
  };
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
  } else if (layer(i).tied_to >= 0 && at.weight_gradient) {
    const GraphLayer& owner = graph_.layers[static_cast<std::size_t>(layer(i).tied_to)];
    add(Phase::backward_weights, {fixed_size(owner.parameters[0].elements), {}},
        how_.precision.storage_bytes);
  }
}

// Layers on the way to one whose gradient depends on its input's values, and these themselves.
std::vector<bool> PassExpansion::before_curved() const {
  std::vector<bool> before(graph_.layers.size());
  for (int i = count() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (layer(i).spec.layer->curved()) before[at] = true;
    if (!before[at]) continue;
    for (const int input : layer(i).inputs) {
      if (input >= 0) before[static_cast<std::size_t>(input)] = true;
    }
  }
  return before;
}

// The gradient of the penalty runs along the graph from the inputs' gradient to the output's, and from every
// curved layer back to the weights before it.
void PassExpansion::double_backward() {
  const std::size_t before = step_.kernels.size();
  const auto extend = [&](int i, const Span& span) {
    Span& whole = double_backward_spans_[static_cast<std::size_t>(i)];
    if (whole.last == 0) whole.first = span.first;
    whole.last = span.last;
    backward_spans_[static_cast<std::size_t>(i)].last = span.last;  // until then tensors are read again
  };
  for (int i = 0; i < count(); ++i) {
    LayerSite at = site(i);
    at.weight_gradient = layer(i).weight_gradient;
    try {
      extend(i,
             emit(i, [&](std::vector<Kernel>& out) { layer(i).spec.layer->double_backward(at, how_, out); }));
    } catch (const NoSecondOrder&) {
      throw ModelError(layer(i).spec.mark, "layer " + in_quotes(layer(i).spec.name) + ": a " +
                                               in_quotes(layer(i).spec.type) +
                                               " in a gradient penalty; expected layers with a second-order "
                                               "backward pass");
    }
  }
  const std::vector<bool> again = before_curved();
  for (int i = count() - 1; i >= 0; --i) {
    if (!again[static_cast<std::size_t>(i)]) continue;
    extend(i, emit(i, [&](std::vector<Kernel>& out) {
             if (gathers_gradients(i)) out.push_back(sum_of_gradients(i));
             const LayerSite at = layer(i).site();
             if (at.input_gradient || at.weight_gradient) backward_of_layer(i, at, out);
           }));
  }
  for (std::size_t k = before; k < step_.kernels.size(); ++k) step_.kernels[k].second_order = true;
}

bool PassExpansion::gathers_gradients(int i) const {
  const std::vector<int> readers = gradient_readers(i);
  return readers.size() > 1 || (readers.size() == 1 && parts_read(readers[0]) > 1);
}

// Gradients of the whole are added, gradients of parts put in their places.
Kernel PassExpansion::sum_of_gradients(int i) const {
  const Shape& shape = layer(i).step_output;
  Size read;
  std::int64_t whole = 0;
  for (const int reader : gradient_readers(i)) {
    read += part_bytes(shape, parts_read(reader));
    if (parts_read(reader) == 1) ++whole;
  }
  const bool adds = whole > 0;
  return memory_kernel(KernelKind::elementwise, Phase::backward_data, adds ? "gradient_sum" : "concat", shape,
                       adds ? std::max<std::int64_t>(1, whole - 1) : 0, read,
                       stored_bytes(shape, how_.precision));
}

Size PassExpansion::part_bytes(Shape shape, std::int64_t parts) const {
  if (parts > 1) shape.dims.back() /= parts;
  return stored_bytes(shape, how_.precision);
}

BackwardNeeds PassExpansion::needs(int i) const { return layer(i).spec.layer->backward_needs(site(i), how_); }

// Layer i overwrites its input's buffer: it may, and nobody else reads that buffer later.
bool PassExpansion::written_in_place(int i) const {
  if (!layer(i).spec.layer->runs_in_place(how_.lowering) || layer(i).inputs.size() != 1) return false;
  const int source = layer(i).inputs[0];
  return source >= 0 && consumers(source).size() == 1 &&
         !(backward_ != Backward::none && needs(source).output);
}

// For every layer the last kernel that needs its output, also under the name of a reader that overwrites it.
std::vector<int> PassExpansion::output_last_uses() const {
  std::vector<int> last_use(graph_.layers.size());
  for (int i = count() - 1; i >= 0; --i) {  // readers stand behind what they read
    int last = forward_of(i).last;
    if (reads_again(i) && needs(i).output) last = std::max(last, backward_of(i).last);
    for (const int reader : consumers(i)) {
      last = std::max(last, forward_of(reader).last);
      if (reads_again(reader) && needs(reader).inputs) last = std::max(last, backward_of(reader).last);
      if (written_in_place(reader)) last = std::max(last, last_use[static_cast<std::size_t>(reader)]);
    }
    last_use[static_cast<std::size_t>(i)] = last;
  }
  return last_use;
}

// For every layer the last kernel that needs its output's gradient. A layer that passes its gradient through
// hands the same tensor on to the layers it reads.
std::vector<int> PassExpansion::gradient_last_uses() const {
  std::vector<int> last_use(graph_.layers.size());
  for (int i = 0; i < count(); ++i) {
    int last = backward_of(i).last;
    for (const int input : layer(i).inputs) {
      if (!layer(i).spec.layer->passes_gradient_through() || input < 0 || !needs_gradient(input)) continue;
      const int sum = gradient_sum(input);
      last = std::max(last, sum >= 0 ? sum : last_use[static_cast<std::size_t>(input)]);
    }
    last_use[static_cast<std::size_t>(i)] = last;
  }
  return last_use;
}

void PassExpansion::feature_maps() {
  const std::vector<int> last_use = output_last_uses();
  for (int i = 0; i < count(); ++i) {
    if (written_in_place(i)) continue;
    add_tensor(TensorRole::feature_map, i, stored_bytes(layer(i).output, how_.precision), forward_of(i).first,
               last_use[static_cast<std::size_t>(i)]);
    const Size extra = needs(i).extra_bytes * layer(i).steps;
    if (reads_again(i) && extra != Size{}) {
      add_tensor(TensorRole::feature_map, i, extra, forward_of(i).first, backward_of(i).last);
    }
  }
  for (std::size_t k = 0; k < graph_.inputs.size(); ++k) graph_input(static_cast<int>(k));
}

// Each reader of a tensor contributes a gradient, which lives from that reader's backward kernels until the
// sum; the sum is made in one of them and lives until the backward kernels of the layer that made the tensor.
void PassExpansion::gradient_maps() {
  const std::vector<int> last_use = gradient_last_uses();
  for (int i = 0; i < count(); ++i) {
    const std::vector<int> readers = gradient_readers(i);
    if (!needs_gradient(i) || readers.empty()) continue;
    const Shape& shape = layer(i).output;
    const int end = last_use[static_cast<std::size_t>(i)];
    const int sum = gradient_sum(i);
    bool sum_has_place = false;
    for (const int reader : readers) {
      // A reader that passes its gradient through serves with its own.
      if (layer(reader).spec.layer->passes_gradient_through()) continue;
      const std::int64_t parts = parts_read(reader);
      const bool holds_sum = !sum_has_place && parts == 1;
      add_tensor(TensorRole::gradient_map, i, part_bytes(shape, parts), backward_of(reader).first,
                 holds_sum ? end : sum);
      sum_has_place = sum_has_place || holds_sum;
    }
    if (!sum_has_place && sum >= 0) add_tensor(TensorRole::gradient_map, i, part_bytes(shape, 1), sum, end);
  }
  if (backward_ == Backward::penalty) second_order_maps();
}

// The gradient of a gradient map lives from the layer that makes it to the last that reads it.
void PassExpansion::second_order_maps() {
  for (int i = 0; i < count(); ++i) {
    const Span& own = double_backward_spans_[static_cast<std::size_t>(i)];
    int last = own.first;
    for (const int reader : consumers(i)) {
      last = std::max(last, double_backward_spans_[static_cast<std::size_t>(reader)].first);
    }
    add_tensor(TensorRole::gradient_map, i, stored_bytes(layer(i).output, how_.precision), own.first, last);
  }
}

std::vector<int> PassExpansion::weight_gradient_births() const {
  std::vector<int> births;
  for (int i = 0; i < count(); ++i) births.push_back(backward_of(i).first);
  return births;
}

void PassExpansion::graph_input(int k) {
  bool used = false;
  int first = 0;
  int last = 0;
  for (int i = 0; i < count(); ++i) {
    for (const int input : layer(i).inputs) {
      if (input != -1 - k) continue;
      first = used ? std::min(first, forward_of(i).first) : forward_of(i).first;
      last = std::max(last, forward_of(i).last);
      if (reads_again(i) && needs(i).inputs) last = std::max(last, backward_of(i).last);
      used = true;
    }
  }
  if (!used) return;
  const Shape& shape = graph_.inputs[static_cast<std::size_t>(k)].shape;
  step_.tensors.push_back({TensorRole::feature_map, -1, stored_bytes(shape, how_.precision), first, last});
}

void PassExpansion::add_tensor(TensorRole role, int i, Size bytes, int first, int last) {
  step_.tensors.push_back({role, first_layer_ + i, bytes, first, last});
}

}  // namespace tbdsim
