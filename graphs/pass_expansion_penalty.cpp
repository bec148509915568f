// The second-order backward pass of a gradient penalty. The penalty is a function of the gradient of the
// graph's input, which a first backward pass computes; the penalty's own gradient is computed in two passes:
//   along the graph, from the gradient of the input's gradient to that of the output's;
//     every GEMM with weights also yields a gradient of these
//   back from every layer whose input gradient depends on its input, as an ordinary
//     backward pass to the weights before it
#include <algorithm>

#include "graphs/pass_expansion.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {

void PassExpansion::double_backward() {
  const std::size_t before = step_.kernels.size();
  slopes();
  along_the_graph();
  back_from_curved();
  for (std::size_t k = before; k < step_.kernels.size(); ++k) step_.kernels[k].second_order = true;
}

// (|g| - 1)^2 of each input's gradient g: its norm, and g scaled by the penalty's derivative.
void PassExpansion::slopes() {
  for (const GraphInput& input : graph_.inputs) {
    const Size bytes = stored_bytes(input.shape, how_.precision);
    (void)emit(0, 1, [&](std::vector<Kernel>& out) {
      out.push_back(memory_kernel(KernelKind::reduction, Phase::backward_data, "norm", input.shape, 2, bytes,
                                  input.shape.rows * kFp32Bytes));
      out.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "scale", input.shape, 1,
                                  bytes, bytes));
    });
  }
}

void PassExpansion::along_the_graph() {
  for (int i = 0; i < count(); ++i) {
    LayerContext at = site(i);
    at.weight_gradient = layer(i).weight_gradient;
    try {
      along_.push_back(emit(i, [&](std::vector<Kernel>& out) {
        const std::size_t first = out.size();
        layer(i).spec.layer->double_backward(at, how_, out);
        if (additions_ > 0) add_in_place(first, out);
      }));
    } catch (const NoSecondOrder&) {
      throw ModelError(layer(i).spec.mark, "layer " + in_quotes(layer(i).spec.name) + ": a " +
                                               in_quotes(layer(i).spec.type) +
                                               " in a gradient penalty; expected layers with a second-order "
                                               "backward pass");
    }
    // Biases have no part in the input's gradient. Weights come first, then biases.
    if (at.weight_gradient) add_to_gradients(i, false, additions_, along_.back());
  }
}

// The gradients of layer i's output: from readers whose input gradient depends on their input, computed along
// the graph, and from readers that the second pass goes back through.
std::vector<PassExpansion::Gradient> PassExpansion::gradients_on_the_way_back(int i) const {
  std::vector<Gradient> gradients;
  for (const int reader : consumers(i)) {
    const auto at = static_cast<std::size_t>(reader);
    const Layer& type = *layer(reader).spec.layer;
    if (!layer(reader).site().input_gradient) continue;
    if (type.input_gradient_depends_on_input()) gradients.push_back({along_[at].first, true, type.parts()});
    if (goes_back_[at])
      gradients.push_back({back_[at].first, !type.gradient_is_view(how_.lowering), type.parts()});
  }
  return gradients;
}

void PassExpansion::back_from_curved() {
  back_.resize(graph_.layers.size());
  back_sum_.assign(graph_.layers.size(), -1);
  goes_back_.resize(graph_.layers.size());
  for (int i = count() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const std::vector<Gradient> gradients = gradients_on_the_way_back(i);
    goes_back_[at] = !gradients.empty();
    if (!goes_back_[at]) continue;
    LayerContext place = layer(i).site();
    place.differentiated = true;  // the gradients that arrive are of what made the first ones
    back_[at] = emit(i, [&](std::vector<Kernel>& out) {
      if (gathers(gradients)) out.push_back(sum_of_gradients(layer(i).step_output, gradients));
      backward_of_layer(i, place, true, out);  // to those made along the graph
    });
    if (gathers(gradients)) back_sum_[at] = back_[at].first;
    if (place.weight_gradient) add_to_gradients(i, true, repeat_, back_[at]);
  }
}

int PassExpansion::last_reading_again(int i) const {
  const auto at = static_cast<std::size_t>(i);
  if (backward_ != Backward::penalty) return backward_of(i).last;
  return goes_back_[at] ? back_[at].last : along_[at].last;
}

// Along the graph a map lives from the layer that makes it to the last that reads it; on the way back maps
// live as in any backward pass.
void PassExpansion::second_order_maps() {
  const std::vector<int> last_use = gradient_last_uses(back_, back_sum_, -1);
  for (int i = 0; i < count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    int last = along_[at].last;
    for (const int reader : consumers(i))
      last = std::max(last, along_[static_cast<std::size_t>(reader)].last);
    add_tensor(TensorRole::gradient_map, i, stored_bytes(layer(i).output, how_.precision), along_[at].first,
               last);
    if (goes_back_[at])
      gradients_of(i, layer(i).output, gradients_on_the_way_back(i), back_sum_[at], last_use[at]);
  }
}

}  // namespace tbdsim
