#include "simulate/analysis/memory_breakdown.h"

#include <algorithm>
#include <map>

namespace tbdsim {
namespace {

constexpr int kInputs = -1;   // layer of the graph's inputs
constexpr int kNoLayer = -2;  // memory of no layer's tensors

Bytes scratch_of(const Iteration& iteration, std::size_t k) {
  const Kernel& kernel = iteration.step->kernels[k];
  const Bytes tensors(kernel.scratch_bytes.at(static_cast<double>(iteration.batch)));
  return kernel.kind == KernelKind::convolution ? tensors + iteration.costs[k].workspace : tensors;
}

std::string name_of_layer(int layer, const TrainingStep& step) {
  if (layer == kInputs) return "(inputs)";
  if (layer == kNoLayer) return "(planned for others)";
  return step.layers[static_cast<std::size_t>(layer)].name;
}

}  // namespace

void MemoryUse::add(TensorRole role, Bytes bytes) {
  switch (role) {
    case TensorRole::weights:
      weights += bytes;
      return;
    case TensorRole::weight_gradients:
      weight_gradients += bytes;
      return;
    case TensorRole::feature_map:
    case TensorRole::gradient_map:
      feature_maps += bytes;
      return;
    case TensorRole::dynamic:
      dynamic += bytes;
      return;
  }
}

const Iteration& largest_iteration(const Prediction& prediction) {
  return prediction.iterations[prediction.largest];
}

std::string peak_place(const Prediction& p) {
  const TrainingStep& step = *largest_iteration(p).step;
  const Kernel& kernel = step.kernels[static_cast<std::size_t>(p.memory.peak_kernel)];
  const std::string layer = kernel.layer < 0 ? "all layers" : name_of_layer(kernel.layer, step);
  return layer + ", " + std::string(phase_name(kernel));
}

std::vector<LayerMemory> memory_by_layer(const Prediction& p) {
  const Iteration& iteration = largest_iteration(p);
  const TrainingStep& step = *iteration.step;
  const auto batch = static_cast<double>(iteration.batch);
  const int peak = p.memory.peak_kernel;
  std::map<int, MemoryUse> uses;
  MemoryUse all;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.first_use > peak || tensor.last_use < peak) continue;
    const Bytes bytes(tensor.bytes.at(batch));
    uses[tensor.layer].add(tensor.role, bytes);
    all.add(tensor.role, bytes);
  }
  if (p.framework->allocator.planned) {
    const MemoryPlan& plan = p.memory;
    uses[kNoLayer] = {plan.weights - all.weights, plan.weight_gradients - all.weight_gradients,
                      plan.feature_maps - all.feature_maps, plan.workspace, plan.dynamic - all.dynamic};
  } else {
    uses[step.kernels[static_cast<std::size_t>(peak)].layer].workspace +=
        scratch_of(iteration, static_cast<std::size_t>(peak));
  }
  std::vector<LayerMemory> layers;
  for (const auto& [layer, use] : uses) {
    const std::string type = layer < 0 ? "" : step.layers[static_cast<std::size_t>(layer)].type;
    layers.push_back({name_of_layer(layer, step), type, use});
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const LayerMemory& a, const LayerMemory& b) { return a.use.total() > b.use.total(); });
  return layers;
}

std::vector<MemoryMoment> memory_over_time(const Iteration& iteration) {
  const TrainingStep& step = *iteration.step;
  const auto batch = static_cast<double>(iteration.batch);
  // What comes alive with, and dies after, each kernel; the running sum is what is alive.
  std::vector<MemoryUse> change(step.kernels.size() + 1);
  for (const Tensor& tensor : step.tensors) {
    const Bytes bytes(tensor.bytes.at(batch));
    change[static_cast<std::size_t>(tensor.first_use)].add(tensor.role, bytes);
    change[static_cast<std::size_t>(tensor.last_use) + 1].add(tensor.role, -1.0 * bytes);
  }
  std::vector<MemoryMoment> moments;
  moments.reserve(step.kernels.size());
  MemoryUse alive;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    alive.weights += change[k].weights;
    alive.weight_gradients += change[k].weight_gradients;
    alive.feature_maps += change[k].feature_maps;
    alive.dynamic += change[k].dynamic;
    const KernelSpan& span = iteration.timeline.kernels[k];
    if (span.beside) continue;  // parameters alone, which are there all the time
    moments.push_back({k, span.start, span.end, alive});
    moments.back().use.workspace = scratch_of(iteration, k);
  }
  return moments;
}

}  // namespace tbdsim
