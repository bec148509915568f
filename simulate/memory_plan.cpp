#include "simulate/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace tbdsim {
namespace {

Bytes& category(MemoryPlan& plan, TensorRole role) {
  switch (role) {
    case TensorRole::weights:
      return plan.weights;
    case TensorRole::weight_gradients:
      return plan.weight_gradients;
    case TensorRole::feature_map:
    case TensorRole::gradient_map:
      return plan.feature_maps;
    case TensorRole::dynamic:
      return plan.dynamic;
  }
  return plan.dynamic;
}

// Scratch memory of a kernel: algorithms above the framework's limit are not chosen.
Bytes workspace(const Kernel& kernel, double batch, const Framework& framework) {
  const Bytes wanted(kernel.workspace_bytes.at(batch));
  return Bytes(kernel.scratch_bytes.at(batch)) + (wanted <= framework.workspace_limit ? wanted : Bytes());
}

// The largest batches at which some kernel's workspace is still within the limit, ascending; then `most`.
std::vector<std::int64_t> workspace_drops(const TrainingStep& step, const Framework& framework,
                                          std::int64_t most) {
  std::set<std::int64_t> batches;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.workspace_bytes.per_sample == 0) continue;
    const double spare = framework.workspace_limit.si() - static_cast<double>(kernel.workspace_bytes.fixed);
    const double batch = std::floor(spare / static_cast<double>(kernel.workspace_bytes.per_sample));
    if (batch >= 1 && batch < static_cast<double>(most)) batches.insert(static_cast<std::int64_t>(batch));
  }
  batches.insert(most);
  return {batches.begin(), batches.end()};
}

}  // namespace

MemoryPlan plan_memory(const TrainingStep& step, double batch, const Framework& framework) {
  // Bytes that come alive before, and die after, each kernel; their running sum is what is alive.
  const std::size_t last = step.kernels.empty() ? 0 : step.kernels.size() - 1;
  std::vector<double> change(last + 2, 0.0);
  for (const Tensor& tensor : step.tensors) {
    const double bytes = tensor.bytes.at(batch);
    change[std::min(static_cast<std::size_t>(tensor.first_use), last)] += bytes;
    change[std::min(static_cast<std::size_t>(tensor.last_use), last) + 1] -= bytes;
  }
  MemoryPlan plan;
  double alive = 0;
  double peak = -1;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    alive += change[k];
    if (alive > peak) {
      peak = alive;
      plan.peak_kernel = static_cast<int>(k);
    }
    plan.workspace = std::max(plan.workspace, workspace(step.kernels[k], batch, framework));
  }
  for (const Tensor& tensor : step.tensors) {
    if (tensor.first_use <= plan.peak_kernel && plan.peak_kernel <= tensor.last_use) {
      category(plan, tensor.role) += Bytes(tensor.bytes.at(batch));
    }
  }
  plan.context = framework.context_memory;
  return plan;
}

std::int64_t largest_batch(const TrainingStep& step, const Framework& framework, Bytes capacity,
                           std::int64_t most) {
  const auto fits = [&](std::int64_t batch) {
    return plan_memory(step, static_cast<double>(batch), framework).total() <= capacity;
  };
  // Memory grows with the batch except where a workspace passes the framework's limit and is dropped: between
  // such batches bisection finds the last one that fits. The highest stretch that has one wins.
  const std::vector<std::int64_t> ends = workspace_drops(step, framework, most);
  for (std::size_t i = ends.size(); i-- > 0;) {
    const std::int64_t first = i == 0 ? 1 : ends[i - 1] + 1;
    if (first > ends[i] || !fits(first)) continue;
    std::int64_t good = first;
    std::int64_t bad = ends[i] + 1;
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    return good;
  }
  return 0;
}

}  // namespace tbdsim
