#include "graphs/parameter_tensors.h"

#include <algorithm>

#include "graphs/orthogonal_update.h"
#include "graphs/parameter_kernels.h"

namespace tbdsim {
namespace {

// The last kernel of each layer's backward pass that makes gradients of its weights.
std::vector<int> last_gradient_kernels(const TrainingStep& step) {
  std::vector<int> last(step.layers.size(), 0);
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    if (kernel.layer >= 0 && kernel.phase == Phase::backward_weights)
      last[static_cast<std::size_t>(kernel.layer)] = static_cast<int>(k);
  }
  return last;
}

}  // namespace

std::vector<int> last_kernels(const TrainingStep& step, std::size_t first) {
  std::vector<int> last(step.layers.size(), -1);
  for (std::size_t k = first; k < step.kernels.size(); ++k) {
    const int layer = step.kernels[k].layer;
    if (layer >= 0) last[static_cast<std::size_t>(layer)] = static_cast<int>(k);
  }
  return last;
}

void append_parameter_tensors(const LayerGraph& graph, int first_layer, const Model& model,
                              const LoweringContext& how, TrainingStep& step) {
  const int last = std::max(0, static_cast<int>(step.kernels.size()) - 1);
  const bool on_host = how.lowering.variables == Variables::host;
  const Optimizer& optimizer = optimizer_of(model.variant, how.precision);
  const bool state_on_host = on_host || how.lowering.optimizer_state == Variables::host;
  const bool fp32_copy = how.precision.fp32_copy && !state_on_host;
  const std::int64_t copies = how.lowering.parameter_copies + (fp32_copy ? 1 : 0);
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      const Size words = fixed_size(tensor.elements);
      const int at = first_layer + static_cast<int>(i);
      const std::int64_t cast = tensor.cast && how.precision.master_weights ? how.precision.storage_bytes : 0;
      step.tensors.push_back({TensorRole::weights, at, words * (how.precision.weight_bytes + cast), 0, last});
      if (model.variant.average)
        step.tensors.push_back({TensorRole::dynamic, at, words * kFp32Bytes, 0, last});
      const bool trained = tensor.trained && graph.layers[i].weight_gradient;
      const Optimizer& rule = rule_of(optimizer, graph.layers[i], tensor);
      const Size state = state_on_host ? Size{} : state_of(rule, tensor, words, how.precision.state_bytes);
      const Size kept = state + words * (copies * kFp32Bytes);
      if (trained && kept != Size{}) step.tensors.push_back({TensorRole::dynamic, at, kept, 0, last});
    }
  }
}

// Appends the tensors of a graph's weight gradients. Transient ones are freed as soon as they are applied
// under an optimizer without state; under others they live until the last gradient is computed (VGG-16 on a
// V100, TensorFlow 2018: Adam needs more memory than SGD by its state and these gradients).
void append_weight_gradients(const LayerGraph& graph, int first_layer, const GradientUse& use,
                             const Model& model, const LoweringContext& how, TrainingStep& step) {
  const GradientStorage storage = how.lowering.weight_gradients;
  const bool persistent = storage == GradientStorage::persistent;
  const bool stateless = optimizer_of(model.variant, how.precision).state_words == 0;
  const bool frees_applied =
      storage == GradientStorage::at_once ||
      (storage == GradientStorage::transient && stateless && model.variant.clip != Clip::norm);
  const bool at_once = frees_applied && !use.kept;
  const std::vector<int> made = last_gradient_kernels(step);
  const int end = static_cast<int>(step.kernels.size()) - 1;
  each_trained(graph, [&](int layer, const ParameterTensor& tensor) {
    const int at = first_layer + layer;
    const int born = use.kept ? 0 : use.first[static_cast<std::size_t>(layer)];
    const int applied = at_once ? std::max(born, made[static_cast<std::size_t>(at)]) : use.last;
    step.tensors.push_back({TensorRole::weight_gradients, at,
                            gradient_elements(tensor, how.lowering) * how.precision.gradient_bytes,
                            persistent ? 0 : born, persistent ? end : applied});
  });
}

void append_gradients(const LayerGraph& graph, int first_layer, std::vector<int> last,
                      const Lowering& lowering, std::int64_t repeat, TrainingStep& step) {
  const auto at = [&](int layer) -> int& { return last[static_cast<std::size_t>(first_layer + layer)]; };
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    const GraphLayer& layer = graph.layers[static_cast<std::size_t>(i)];
    if (layer.tied_to >= 0 && layer.weight_gradient) at(layer.tied_to) = std::max(at(layer.tied_to), at(i));
  }
  const auto before = static_cast<std::ptrdiff_t>(step.gradients.size());
  each_trained(graph, [&](int layer, const ParameterTensor& tensor) {
    const int ready = at(layer) < 0 ? static_cast<int>(step.kernels.size()) - 1 : at(layer);
    step.gradients.push_back({first_layer + layer, gradient_elements(tensor, lowering), ready, repeat});
  });
  std::stable_sort(step.gradients.begin() + before, step.gradients.end(),
                   [](const ParameterGradient& a, const ParameterGradient& b) { return a.ready < b.ready; });
}

}  // namespace tbdsim
