#include "simulate/analysis/memory_breakdown.h"

#include <algorithm>
#include <map>

#include "simulate/memory/iteration_replay.h"

namespace tbdsim {
namespace {

constexpr int kInputs = -1;     // "layer" of the graph's inputs
constexpr int kNoLayer = -2;    // "layer" of memory that holds no layer's tensors
constexpr int kLibraries = -3;  // "layer" of workspaces that libraries keep

std::string name_of_layer(int layer, const TrainingStep& step) {
  if (layer == kInputs) return "(inputs)";
  if (layer == kNoLayer) return "(planned for others)";
  if (layer == kLibraries) return "(workspaces of cuBLAS)";
  return step.layers[static_cast<std::size_t>(layer)].name;
}

}  // namespace

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
    uses[tensor.layer][category_of(tensor.role)] += bytes;
    all[category_of(tensor.role)] += bytes;
  }
  if (p.framework->allocator.static_plan) {
    MemoryUse& others = uses[kNoLayer];
    for (std::size_t c = 0; c < others.amounts.size(); ++c)
      others.amounts[c] = p.memory.use.amounts[c] - all.amounts[c];
  } else {
    uses[step.kernels[static_cast<std::size_t>(peak)].layer][MemoryCategory::workspace] +=
        scratch_of(step, iteration.costs, batch, static_cast<std::size_t>(peak));
  }
  if (p.memory.kept_workspaces > Bytes())
    uses[kLibraries][MemoryCategory::workspace] = p.memory.kept_workspaces;
  std::vector<LayerMemory> layers;
  for (const auto& [layer, use] : uses) {
    const std::string type = layer < 0 ? "" : step.layers[static_cast<std::size_t>(layer)].type;
    layers.push_back({name_of_layer(layer, step), type, use});
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const LayerMemory& a, const LayerMemory& b) { return a.use.total() > b.use.total(); });
  return layers;
}

std::vector<MemoryMoment> memory_over_time(const Iteration& iteration, Bytes kept_workspaces) {
  const TrainingStep& step = *iteration.step;
  const auto batch = static_cast<double>(iteration.batch);
  const std::vector<ByCategory<Size>> alive = tensors_alive(step);
  std::vector<MemoryMoment> moments;
  moments.reserve(alive.size());
  for (std::size_t k = 0; k < alive.size(); ++k) {
    const KernelSpan& span = iteration.timeline.kernels[k];
    if (span.async_update) continue;
    MemoryUse use = memory_at(alive[k], batch);
    use[MemoryCategory::workspace] = scratch_of(step, iteration.costs, batch, k) + kept_workspaces;
    moments.push_back({k, span.start, span.end, use});
  }
  return moments;
}

}  // namespace tbdsim
