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

// Gradients of the whole are added, gradients of parts put in their places.
Kernel PassExpansion::sum_of_gradients(const Shape& shape, const std::vector<Gradient>& gradients) const {
  Size read;
  std::int64_t whole = 0;
  for (const Gradient& gradient : gradients) {
    read += part_bytes(shape, gradient.parts, how_.precision);
    if (gradient.parts == 1) ++whole;
  }
  const bool adds = whole > 0;
  return memory_kernel(
      KernelKind::elementwise, Phase::backward_data, adds ? "gradient_sum" : "gradient_concat", shape,
      adds ? std::max<std::int64_t>(1, whole - 1) : 0, read, stored_bytes(shape, how_.precision));
}

Size PassExpansion::part_bytes(Shape shape, std::int64_t parts, const Precision& precision) {
  if (parts > 1) shape.dims.back() /= parts;
  return stored_bytes(shape, precision);
}

// A penalty's second order reads what gradients of weights need, too.
BackwardNeeds PassExpansion::needs(int i) const {
  LayerContext at = site(i);
  if (backward_ == Backward::penalty) at.weight_gradient = layer(i).weight_gradient;
  BackwardNeeds needs;
  at_layer(i, [&] { needs = layer(i).spec.layer->backward_needs(at, how_of(i)); });
  return needs;
}

// True if layer i's output is a view of its input, or overwrites the input's buffer, which no other kernel
// reads later.
bool PassExpansion::written_in_place(int i) const {
  if (layer(i).inputs.size() != 1) return false;
  const int source = layer(i).inputs[0];
  if (layer(i).spec.layer->is_view(how_.lowering)) return source >= 0;
  if (!layer(i).spec.layer->runs_in_place(how_.lowering)) return false;
  return source >= 0 && consumers(source).size() == 1 &&
         !(backward_ != Backward::none && needs(source).output);
}

// For every layer the kernels that need its output, also under the name of a reader that overwrites it.
std::vector<PassExpansion::Uses> PassExpansion::output_uses() const {
  std::vector<Uses> uses(graph_.layers.size());
  for (int i = count() - 1; i >= 0; --i) {  // readers stand behind what they read
    Uses& use = uses[static_cast<std::size_t>(i)];
    use.last = use.last_forward = forward_of(i).last;
    const auto read_again_by = [&](int reader) {
      use.last = std::max(use.last, last_reading_again(reader));
      use.again_from(backward_of(reader).first);
    };
    if (reads_again(i) && needs(i).output) read_again_by(i);
    for (const int reader : consumers(i)) {
      const Uses& after = uses[static_cast<std::size_t>(reader)];
      const bool overwrites = written_in_place(reader);
      use.last_forward =
          std::max(use.last_forward, overwrites ? after.last_forward : forward_of(reader).last);
      use.last = std::max({use.last, forward_of(reader).last, overwrites ? after.last : 0});
      if (reads_again(reader) && needs(reader).inputs) read_again_by(reader);
      if (overwrites && after.first_again >= 0) use.again_from(after.first_again);
    }
  }
  return uses;
}

// For every layer the last kernel that needs its output's gradient, which those of `spans` read. A layer that
// passes its gradient through hands the same tensor on to the layers it reads.
std::vector<int> PassExpansion::gradient_last_uses(const std::vector<Span>& spans,
                                                   const std::vector<int>& sums, int inputs_end) const {
  std::vector<int> last_use(graph_.layers.size());
  for (int i = 0; i < count(); ++i) {
    int last = spans[static_cast<std::size_t>(i)].last;
    for (const int input : layer(i).inputs) {
      if (!layer(i).spec.layer->gradient_is_view(how_.lowering)) continue;
      const auto source = static_cast<std::size_t>(input >= 0 ? input : -1 - input);
      if (input < 0 && inputs_end >= 0) {
        last = std::max(last, input_sum_[source] >= 0 ? input_sum_[source] : inputs_end);
      } else if (input >= 0 && needs_gradient(input)) {
        last = std::max(last, sums[source] >= 0 ? sums[source] : last_use[source]);
      }
    }
    last_use[static_cast<std::size_t>(i)] = last;
  }
  return last_use;
}

void PassExpansion::feature_maps() {
  const std::vector<Uses> uses = output_uses();
  for (int i = 0; i < count(); ++i) at_layer(i, [&] { feature_map(i, uses[static_cast<std::size_t>(i)]); });
  for (std::size_t k = 0; k < graph_.inputs.size(); ++k) graph_input(static_cast<int>(k));
}

void PassExpansion::feature_map(int i, const Uses& uses) {
  if (written_in_place(i)) return;
  const Size bytes = stored_bytes(layer(i).output, how_of(i).precision);
  add_tensor(TensorRole::feature_map, i, held_at_once(loss_part(i), layer(i), how_.lowering, bytes),
             forward_of(i).first, uses.last);
  if (uses.first_again >= 0) {
    step_.tensors.back().last_forward = uses.last_forward;
    step_.tensors.back().first_again = uses.first_again;
  }
  if (!reads_again(i)) return;
  const BackwardNeeds again = needs(i);
  const Size extra = again.extra_bytes * layer(i).steps;
  if (extra == Size{}) return;
  add_tensor(TensorRole::feature_map, i, extra, forward_of(i).first, last_reading_again(i));
  step_.tensors.back().last_forward = forward_of(i).last;
  step_.tensors.back().first_again = backward_of(i).first;
  step_.tensors.back().pieces = checked_multiply(again.extra_pieces, layer(i).steps);
  step_.tensors.back().library_state = again.library_state;
}

std::int64_t PassExpansion::output_pieces(int i) const {
  if (layer(i).steps > 1) return layer(i).steps;
  return layer(i).spec.layer->output_pieces(layer(i).site(), how_.lowering);
}

// Appends the gradient tensors of layer i's output, or of graph input -1 - i. One that has the whole shape
// holds the sum and lives until `end`. A gradient that a layer passes through is a tensor of that layer.
void PassExpansion::gradients_of(int i, const Shape& shape, const std::vector<Gradient>& gradients, int sum,
                                 int end) {
  bool sum_has_place = false;
  const Precision& precision = in_fp32(i) ? kPrecisions[0] : how_.precision;
  for (const Gradient& gradient : gradients) {
    if (!gradient.map) continue;
    const bool holds_sum = !sum_has_place && gradient.parts == 1;
    add_tensor(TensorRole::gradient_map, i, part_bytes(shape, gradient.parts, precision), gradient.born,
               holds_sum ? end : sum);
    sum_has_place = sum_has_place || holds_sum;
  }
  if (!sum_has_place && sum >= 0) {
    add_tensor(TensorRole::gradient_map, i, part_bytes(shape, 1, precision), sum, end);
  }
}

// Each reader of a tensor contributes a gradient, which lives from that reader's backward kernels until the
// sum; the sum lives until the backward kernels of the layer that made the tensor. A penalty goes along the
// graph from the gradients of its inputs; otherwise they are for earlier runs.
void PassExpansion::gradient_maps(int end) {
  const bool penalty = backward_ == Backward::penalty;
  const int inputs_end = penalty ? along_.back().last : backward_ == Backward::inputs ? end : -1;
  const std::vector<int> last_use =
      gradient_last_uses(penalty ? along_ : backward_spans_, gradient_sum_, inputs_end);
  for (int i = 0; i < count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (needs_gradient(i)) {
      gradients_of(i, layer(i).output, gradients_from(gradient_readers(i)), gradient_sum_[at], last_use[at]);
    }
  }
  for (std::size_t k = 0; k < graph_.inputs.size(); ++k) {
    gradients_of(-1 - static_cast<int>(k), graph_.inputs[k].shape, gradients_from(input_gradient_readers(k)),
                 input_sum_[k], inputs_end);
  }
  if (penalty) second_order_maps();
}

std::vector<int> PassExpansion::weight_gradient_births() const {
  std::vector<int> births;
  const std::vector<Span>& writers = backward_ == Backward::penalty ? along_ : backward_spans_;
  for (const Span& writer : writers) births.push_back(writer.first);
  for (int i = 0; i < count(); ++i) {  // a tied layer, which goes back earlier, writes the owner's
    if (layer(i).tied_to < 0 || !layer(i).weight_gradient) continue;
    int& owner = births[static_cast<std::size_t>(layer(i).tied_to)];
    owner = std::min(owner, births[static_cast<std::size_t>(i)]);
  }
  return births;
}

void PassExpansion::graph_input(int k) {
  const std::vector<int>& readers = readers_[static_cast<std::size_t>(k)];
  if (readers.empty()) return;
  int last = 0;
  for (const int i : readers) {
    last = std::max(last, forward_of(i).last);
    if (reads_again(i) && needs(i).inputs) last = std::max(last, last_reading_again(i));
  }
  at_layer(readers.front(), [&] {
    const Shape& shape = graph_.inputs[static_cast<std::size_t>(k)].shape;
    add_tensor(TensorRole::feature_map, -1 - k, stored_bytes(shape, how_.precision),
               forward_of(readers.front()).first, last);
  });
}

void PassExpansion::add_tensor(TensorRole role, int i, Size bytes, int first, int last) {
  step_.tensors.push_back({.role = role,
                           .layer = i < 0 ? -1 : first_layer_ + i,
                           .bytes = bytes,
                           .first_use = first,
                           .last_use = std::max(first, last),
                           .pieces = i < 0 ? 1 : output_pieces(i)});
}

}  // namespace tbdsim
