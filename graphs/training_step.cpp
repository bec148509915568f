#include "graphs/training_step.h"

#include <algorithm>

#include "graphs/pass_expansion.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostKernels = 2'000'000;  // of an iteration; what memory holds

// Storage of a parameter's gradient: cast parameters have gradients of the low precision.
std::int64_t gradient_bytes(const ParameterTensor& tensor, const Precision& precision) {
  return tensor.cast ? precision.storage_bytes : kFp32Bytes;
}

void append_casts(const LayerGraph& graph, int first_layer, const Precision& precision, TrainingStep& step) {
  if (!precision.master_weights) return;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (!tensor.cast) continue;
      Kernel cast = memory_kernel(
          KernelKind::elementwise, Phase::forward, "cast", {fixed_size(tensor.elements), {}}, 1,
          fixed_size(tensor.elements) * kFp32Bytes, fixed_size(tensor.elements) * precision.storage_bytes);
      cast.layer = first_layer + static_cast<int>(i);
      step.kernels.push_back(cast);
    }
  }
}

void append_updates(const LayerGraph& graph, int first_layer, const Optimizer& optimizer,
                    const Expansion& how, std::int64_t repeat, TrainingStep& step) {
  if (optimizer.name == "none") return;
  const std::size_t before = step.kernels.size();
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (!graph.layers[i].weight_gradient) continue;
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (!tensor.trained) continue;
      const Size words = fixed_size(tensor.elements);
      const std::int64_t kept =
          (1 + optimizer.state_words) * kFp32Bytes;  // the weight and the optimizer's state
      Kernel update =
          memory_kernel(KernelKind::update, Phase::update, optimizer.name, {words, {}}, optimizer.flops,
                        words * (kept + gradient_bytes(tensor, how.precision)), words * kept);
      update.layer = first_layer + static_cast<int>(i);
      update.repeat = repeat;
      const bool fuse = how.lowering.update == UpdateKernels::fused && step.kernels.size() > before;
      if (!fuse) {
        step.kernels.push_back(update);
        continue;
      }
      Kernel& all = step.kernels.back();
      all.layer = -1;
      std::get<VectorShape>(all.shape).elements += words;
      all.flops += update.flops;
      all.read_bytes += update.read_bytes;
      all.written_bytes += update.written_bytes;
    }
  }
}

// Weights, their gradients and what the optimizer keeps; they live as long as the model.
void append_parameter_tensors(const LayerGraph& graph, int first_layer, const Model& model,
                              const Expansion& how, TrainingStep& step) {
  const int last = std::max(0, static_cast<int>(step.kernels.size()) - 1);
  const std::int64_t kept_bytes =
      (model.variant.optimizer.state_words + how.lowering.parameter_copies) * kFp32Bytes;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      const Size words = fixed_size(tensor.elements);
      const int at = first_layer + static_cast<int>(i);
      const std::int64_t cast = tensor.cast && how.precision.master_weights ? how.precision.storage_bytes : 0;
      step.tensors.push_back({TensorRole::weights, at, words * (kFp32Bytes + cast), 0, last});
      const bool trained = tensor.trained && graph.layers[i].weight_gradient;
      if (trained && kept_bytes > 0)
        step.tensors.push_back({TensorRole::dynamic, at, words * kept_bytes, 0, last});
    }
  }
}

// From when to when the gradients of one graph's weights are in use: several passes may add to them before
// one updates.
struct GradientUse {
  std::vector<int> first;  // kernel that writes a layer's gradients first
  int last = 0;            // kernel that needs them last
};

void append_weight_gradients(const LayerGraph& graph, int first_layer, const GradientUse& use,
                             const Expansion& how, TrainingStep& step) {
  const bool persistent = how.lowering.weight_gradients == GradientStorage::persistent;
  const int end = static_cast<int>(step.kernels.size()) - 1;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (!graph.layers[i].weight_gradient) continue;
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (!tensor.trained) continue;
      step.tensors.push_back({TensorRole::weight_gradients, first_layer + static_cast<int>(i),
                              fixed_size(tensor.elements) * gradient_bytes(tensor, how.precision),
                              persistent ? 0 : use.first[i], persistent ? end : use.last});
    }
  }
}

LayerSummary summarise(const GraphLayer& layer) {
  LayerSummary summary{.name = layer.spec.name,
                       .type = layer.spec.type,
                       .output = layer.output,
                       .forward_macs = {},
                       .training_macs = {}};
  for (const ParameterTensor& tensor : layer.parameters) {
    std::int64_t& sum = !tensor.trained     ? summary.statistics
                        : layer.spec.frozen ? summary.frozen_parameters
                                            : summary.trained_parameters;
    sum = checked_add(sum, tensor.elements);
  }
  return summary;
}

void count_macs(TrainingStep& step) {
  for (const Kernel& kernel : step.kernels) {
    if (kernel.layer < 0) continue;
    LayerSummary& layer = step.layers[static_cast<std::size_t>(kernel.layer)];
    if (kernel.phase == Phase::forward) layer.forward_macs += kernel.macs * kernel.repeat;
    layer.training_macs += kernel.macs * kernel.repeat;
  }
}

TrainingStep expand(const Model& model, const Expansion& how) {
  TrainingStep step;
  step.sample = model.sample;
  std::map<std::string, int> first_layers;
  for (const auto& [name, graph] : model.graphs) {
    first_layers[name] = static_cast<int>(step.layers.size());
    for (const GraphLayer& layer : graph.layers) step.layers.push_back(summarise(layer));
    append_casts(graph, first_layers[name], how.precision, step);
  }
  std::map<std::string, GradientUse> gradients;
  for (const TrainingPass& pass : model.training) {
    const LayerGraph& graph = model.graphs.at(pass.graph);
    const int first_layer = first_layers[pass.graph];
    PassExpansion expansion(graph, pass, how, first_layer, step);
    expansion.forward();
    if (pass.backward) expansion.backward();
    if (pass.update) append_updates(graph, first_layer, model.variant.optimizer, how, pass.repeat, step);
    expansion.feature_maps();
    if (pass.backward) {
      expansion.gradient_maps();
      GradientUse& use = gradients[pass.graph];
      if (use.first.empty()) use.first = expansion.weight_gradient_births();
      use.last = static_cast<int>(step.kernels.size()) - 1;
    }
    if (step.kernels.size() > kMostKernels) {
      throw ModelError("model " + model.name +
                       ": more than 2000000 kernels; expected fewer layers or passes");
    }
  }
  for (const auto& [name, graph] : model.graphs)
    append_parameter_tensors(graph, first_layers[name], model, how, step);
  for (const auto& [name, use] : gradients) {
    append_weight_gradients(model.graphs.at(name), first_layers[name], use, how, step);
  }
  count_macs(step);
  return step;
}

}  // namespace

TrainingStep expand_training_step(const Model& model, const Lowering& lowering, const Precision& precision) {
  try {
    return expand(model, {lowering, precision});
  } catch (const std::overflow_error& overflow) {
    throw ModelError("model " + model.name + ": " + overflow.what() + "; expected smaller layers");
  }
}

}  // namespace tbdsim
