#include "simulate/memory/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "hwspecs/base/error.h"
#include "simulate/memory/autotune_workspace.h"

namespace tbdsim {
namespace {

using Alive = MemoryOutline::Alive;

// Memory at kernel k, from the tensors alive at all kernels.
Alive alive_at(std::size_t k, const TrainingStep& step, const std::vector<ByCategory<Size>>& tensors) {
  Alive alive{.kernel = static_cast<int>(k), .tensors = tensors[k], .all = {}};
  alive.tensors[MemoryCategory::workspace] = step.kernels[k].scratch_bytes;
  alive.all = alive.tensors.total();
  return alive;
}

// Memory at the kernels at which no other has at least as many bytes, both fixed and for each sample: the one
// with most for each sample first. The first of equal kernels counts.
std::vector<Alive> highest(const TrainingStep& step, const std::vector<ByCategory<Size>>& tensors) {
  const auto reaches = [](const Alive& a, const Alive& b) {
    return a.all.fixed >= b.all.fixed && a.all.per_sample >= b.all.per_sample;
  };
  std::vector<Alive> peaks;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Alive alive = alive_at(k, step, tensors);
    if (std::ranges::any_of(peaks, [&](const Alive& peak) { return reaches(peak, alive); })) continue;
    std::erase_if(peaks, [&](const Alive& peak) { return reaches(alive, peak); });
    peaks.push_back(alive);
  }
  std::ranges::sort(peaks, std::greater<>(), [](const Alive& alive) { return alive.all.per_sample; });
  return peaks;
}

std::vector<MemoryOutline::Parameters> parameters_of(const TrainingStep& step) {
  std::map<std::pair<MemoryCategory, Size>, std::int64_t> counts;
  for (const Tensor& tensor : step.tensors) {
    const MemoryCategory category = category_of(tensor.role);
    if (category != MemoryCategory::feature_maps) ++counts[{category, tensor.bytes}];
  }
  std::vector<MemoryOutline::Parameters> parameters;
  for (const auto& [tensor, count] : counts) parameters.push_back({tensor.first, tensor.second, count});
  return parameters;
}

Bytes workspace_of(const Alive& convolution, std::span<const KernelCost> costs) {
  return costs[static_cast<std::size_t>(convolution.kernel)].workspace;
}

// The kernel that needs most memory.
struct Peak {
  const Alive* alive = nullptr;
  Bytes workspace;  // of its algorithm
  Bytes total;

  // The first kernel in the step's order counts among those with equal totals.
  void raise(const Alive& candidate, double batch, Bytes workspace_there) {
    const Bytes all = Bytes(candidate.all.at(batch)) + workspace_there;
    const bool earlier = alive != nullptr && all == total && candidate.kernel < alive->kernel;
    if (alive == nullptr || all > total || earlier) *this = {&candidate, workspace_there, all};
  }
};

Peak peak_at(double batch, const MemoryOutline& outline, std::span<const KernelCost> costs) {
  Peak peak;
  for (const Alive& alive : outline.peaks) peak.raise(alive, batch, Bytes());
  for (const Alive& alive : outline.convolutions) peak.raise(alive, batch, workspace_of(alive, costs));
  return peak;
}

// Bytes by which the peak would be higher with the workspaces of all algorithms.
Bytes bytes_for_autotuning(const Peak& peak, const MemoryOutline& outline, const TrainingStep& step,
                           double batch, Bytes workspace_limit) {
  Peak tried = peak;
  for (const Alive& convolution : outline.convolutions) {
    const Kernel& kernel = step.kernels[static_cast<std::size_t>(convolution.kernel)];
    tried.raise(convolution, batch, autotune_workspace(kernel, batch, workspace_limit));
  }
  return tried.total - peak.total;
}

MemoryPlan plan_as_needed(const MemoryOutline& outline, const TrainingStep& step,
                          std::span<const KernelCost> costs, double batch, const Framework& framework) {
  const Peak peak = peak_at(batch, outline, costs);
  MemoryPlan plan;
  plan.use = memory_at(peak.alive->tensors, batch);
  plan.use[MemoryCategory::workspace] += peak.workspace;
  plan.peak_kernel = peak.alive->kernel;
  if (framework.allocator.autotunes)
    plan.autotuning = bytes_for_autotuning(peak, outline, step, batch, framework.workspace_limit);
  return plan;
}

// Bytes that the driver allocates beyond a block of a pool of exact sizes. The pool requests 32 B more than
// the block (MXNet 0.9 to 1.2, storage/pooled_storage_manager.h: NDEV).
Bytes added_by_driver(Bytes block, Bytes page) {
  constexpr Bytes kRequestedMore(32);
  if (block == Bytes() || page == Bytes()) return {};
  return from_driver(block + kRequestedMore, page) - block;
}

MemoryPlan plan_before_run(const MemoryOutline& outline, std::span<const KernelCost> costs, double batch,
                           const Allocator& allocator, Bytes page) {
  MemoryPlan plan;
  plan.peak_kernel = peak_at(batch, outline, costs).alive->kernel;
  const bool exact_sizes = allocator.block == Bytes();
  const auto add = [&](MemoryCategory category, Bytes bytes, std::int64_t blocks) {
    const Bytes block = allocator.rounded_up(bytes);
    const auto count = static_cast<double>(blocks);
    plan.use[category] += block * count;
    if (exact_sizes) plan.context += added_by_driver(block, page) * count;
  };
  for (const auto& [category, bytes, count] : outline.parameters)
    add(category, Bytes(bytes.at(batch)), count);
  for (const auto& [bytes, count] : outline.pool)
    add(MemoryCategory::feature_maps, Bytes(bytes.at(batch)), count);
  plan.use[MemoryCategory::feature_maps] += Bytes(outline.library_state.at(batch));
  Bytes largest_workspace;
  for (const Alive& convolution : outline.convolutions)
    largest_workspace = std::max(largest_workspace, workspace_of(convolution, costs));
  add(MemoryCategory::workspace, largest_workspace, 1);
  return plan;
}

}  // namespace

MemoryOutline memory_outline(const TrainingStep& step, bool planned) try {
  if (step.kernels.empty()) return {};
  const std::vector<ByCategory<Size>> tensors = tensors_alive(step);
  MemoryOutline outline;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (step.kernels[k].kind == KernelKind::convolution)
      outline.convolutions.push_back(alive_at(k, step, tensors));
  }
  outline.peaks = highest(step, tensors);
  if (planned) outline.pool = planned_pool(step);
  outline.parameters = parameters_of(step);
  for (const Tensor& tensor : step.tensors) {
    if (tensor.library_state) outline.library_state += tensor.bytes;
  }
  return outline;
} catch (const std::overflow_error&) {
  throw ModelError("the tensors of a training step make more than 64 bits of bytes; expected smaller layers");
}

MemoryPlan plan_memory(const MemoryOutline& outline, const TrainingStep& step,
                       std::span<const KernelCost> costs, double batch, const Framework& framework,
                       const DeviceMemory& device) {
  MemoryPlan plan;
  if (!outline.peaks.empty()) {
    plan = framework.allocator.static_plan
               ? plan_before_run(outline, costs, batch, framework.allocator, device.page)
               : plan_as_needed(outline, step, costs, batch, framework);
    plan.kept_workspaces =
        device.cublas_workspace * static_cast<double>(framework.allocator.cublas_workspaces);
    plan.use[MemoryCategory::workspace] += plan.kept_workspaces;
  }
  plan.context += framework.context_memory;
  return plan;
}

MemoryPlan on_one_of(std::int64_t gpus, MemoryPlan plan, const Framework& framework) {
  if (gpus < 2 || framework.lowering.parameter_copies == 0) return plan;
  const Bytes own_part = plan.use[MemoryCategory::dynamic] * (1.0 / static_cast<double>(gpus));
  const Bytes buffers = plan.use[MemoryCategory::weight_gradients];
  plan.use[MemoryCategory::dynamic] = own_part + buffers;
  return plan;
}

std::int64_t largest_batch(const std::function<bool(std::int64_t)>& fits, std::int64_t most) {
  if (!fits(1)) return 0;
  std::int64_t good = 1;
  std::int64_t bad = most + 1;
  while (bad - good > 1 && bad > most) {  // doubles up to the first batch that does not fit
    const std::int64_t next = std::min(most, good * 2);
    (fits(next) ? good : bad) = next;
    if (good == most) return most;
  }
  while (bad - good > 1) {  // bisects
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace tbdsim
