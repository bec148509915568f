#include "simulate/memory_plan.h"

#include <algorithm>
#include <vector>

namespace tbdsim {
namespace {

Bytes& category(MemoryPlan& plan, TensorRole role) {
  switch (role) {
    case TensorRole::weights: return plan.weights;
    case TensorRole::weight_gradients: return plan.weight_gradients;
    case TensorRole::feature_map:
    case TensorRole::gradient_map: return plan.feature_maps;
    case TensorRole::dynamic: return plan.dynamic;
  }
  return plan.dynamic;
}

// Scratch memory of a kernel: algorithms above the framework's limit are not chosen.
Bytes workspace(const Kernel& kernel, double batch, const Framework& framework) {
  const Bytes wanted(kernel.workspace_bytes.at(batch));
  return wanted <= framework.workspace_limit ? wanted : Bytes();
}

}  // namespace

MemoryPlan plan_memory(const TrainingStep& step, double batch, const Framework& framework) {
  // Bytes that come alive before, and die after, each kernel; their running sum is what is alive.
  std::vector<double> change(step.kernels.size() + 1, 0.0);
  const std::size_t last = step.kernels.empty() ? 0 : step.kernels.size() - 1;
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

std::int64_t largest_batch(const TrainingStep& step, const Framework& framework, Bytes capacity, std::int64_t most) {
  const auto fits = [&](std::int64_t batch) {
    return plan_memory(step, static_cast<double>(batch), framework).total() <= capacity;
  };
  if (!fits(1)) return 0;
  std::int64_t good = 1;
  while (good < most && fits(std::min(2 * good, most))) good = std::min(2 * good, most);
  std::int64_t bad = std::min(2 * good, most + 1);
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace tbdsim
