// The tensors of a pass: which kernels need each layer's output and its gradient, and how long these live.
#include <algorithm>

#include "graphs/pass_expansion.h"

namespace tbdsim {

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
