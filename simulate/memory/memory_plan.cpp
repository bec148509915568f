#include "simulate/memory/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "hwspecs/base/error.h"
#include "simulate/memory/autotune_workspace.h"
#include "simulate/memory/driver_memory.h"

namespace tbdsim {
namespace {

using Alive = MemoryOutline::Alive;

MemoryOutline::Category category_of(TensorRole role) {
  switch (role) {
    case TensorRole::weights:
      return MemoryOutline::weights;
    case TensorRole::weight_gradients:
      return MemoryOutline::weight_gradients;
    case TensorRole::feature_map:
    case TensorRole::gradient_map:
      return MemoryOutline::feature_maps;
    case TensorRole::dynamic:
      return MemoryOutline::dynamic;
  }
  return MemoryOutline::dynamic;
}

// What is alive at each kernel.
std::vector<Alive> alive_at_kernels(const TrainingStep& step) {
  // Bytes that come alive before, and die after, each kernel; their running sum is what is alive.
  const std::size_t last = step.kernels.size() - 1;
  std::vector<Alive> alive(last + 2);
  for (const Tensor& tensor : step.tensors) {
    const std::size_t category = category_of(tensor.role);
    alive[std::min(static_cast<std::size_t>(tensor.first_use), last)].tensors[category] += tensor.bytes;
    alive[std::min(static_cast<std::size_t>(tensor.last_use), last) + 1].tensors[category] +=
        tensor.bytes * -1;
  }
  alive.pop_back();
  for (std::size_t k = 0; k < alive.size(); ++k) {
    alive[k].kernel = static_cast<int>(k);
    alive[k].scratch = alive[k].all = step.kernels[k].scratch_bytes;
    for (std::size_t c = 0; c < alive[k].tensors.size(); ++c) {
      if (k > 0) alive[k].tensors[c] += alive[k - 1].tensors[c];
      alive[k].all += alive[k].tensors[c];
    }
  }
  return alive;
}

// Those to which none has both more for each sample and more fixed; of equals the first.
std::vector<Alive> highest(std::vector<Alive> alive) {
  std::stable_sort(alive.begin(), alive.end(), [](const Alive& a, const Alive& b) {
    return std::pair(a.all.per_sample, a.all.fixed) > std::pair(b.all.per_sample, b.all.fixed);
  });
  std::vector<Alive> peaks;
  for (const Alive& peak : alive) {
    if (peaks.empty() || peak.all.fixed > peaks.back().all.fixed) peaks.push_back(peak);
  }
  return peaks;
}

std::vector<MemoryOutline::Parameters> parameters_of(const TrainingStep& step) {
  std::map<std::pair<MemoryOutline::Category, Size>, std::int64_t> counts;
  for (const Tensor& tensor : step.tensors) {
    const MemoryOutline::Category category = category_of(tensor.role);
    if (category != MemoryOutline::feature_maps) ++counts[{category, tensor.bytes}];
  }
  std::vector<MemoryOutline::Parameters> parameters;
  for (const auto& [tensor, count] : counts) parameters.push_back({tensor.first, tensor.second, count});
  return parameters;
}

Bytes workspace_of(const Alive& convolution, std::span<const KernelCost> costs) {
  return costs[static_cast<std::size_t>(convolution.kernel)].workspace;
}

// The kernel at which most is alive, with its workspace.
struct Peak {
  const Alive* alive = nullptr;
  Bytes workspace;
  Bytes total;

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

MemoryPlan plan_as_needed(const MemoryOutline& outline, const TrainingStep& step,
                          std::span<const KernelCost> costs, double batch, const Framework& framework) {
  const Peak peak = peak_at(batch, outline, costs);
  const auto alive = [&](MemoryOutline::Category category) {
    return Bytes(peak.alive->tensors[category].at(batch));
  };
  MemoryPlan plan;
  plan.peak_kernel = peak.alive->kernel;
  plan.weights = alive(MemoryOutline::weights);
  plan.weight_gradients = alive(MemoryOutline::weight_gradients);
  plan.feature_maps = alive(MemoryOutline::feature_maps);
  plan.dynamic = alive(MemoryOutline::dynamic);
  plan.workspace = Bytes(peak.alive->scratch.at(batch)) + peak.workspace;
  if (!framework.allocator.tries_algorithms) return plan;
  Peak tried = peak;
  for (const Alive& convolution : outline.convolutions) {
    const Kernel& kernel = step.kernels[static_cast<std::size_t>(convolution.kernel)];
    tried.raise(convolution, batch, tried_workspace(kernel, batch, framework.workspace_limit));
  }
  plan.trials = tried.total - peak.total;
  return plan;
}

// By so much more than a block of a pool of exact sizes the driver hands out, which is asked for 32 B more
// (MXNet 0.9 to 1.2, storage/pooled_storage_manager.h: NDEV).
Bytes rounded_by(Bytes block, Bytes page) {
  constexpr Bytes kAskedMore(32);
  if (block == Bytes() || page == Bytes()) return {};
  return from_driver(block + kAskedMore, page) - block;
}

MemoryPlan plan_ahead(const MemoryOutline& outline, std::span<const KernelCost> costs, double batch,
                      const Allocator& allocator, Bytes page) {
  MemoryPlan plan;
  plan.peak_kernel = peak_at(batch, outline, costs).alive->kernel;
  const auto taken = [&](const Size& bytes, std::int64_t count) {
    const Bytes block = allocator.taken_for(Bytes(bytes.at(batch)));
    if (allocator.block == Bytes()) plan.context += rounded_by(block, page) * static_cast<double>(count);
    return block * static_cast<double>(count);
  };
  std::array<Bytes, 4> categories;
  for (const auto& [category, bytes, count] : outline.parameters) categories[category] += taken(bytes, count);
  plan.weights = categories[MemoryOutline::weights];
  plan.weight_gradients = categories[MemoryOutline::weight_gradients];
  plan.dynamic = categories[MemoryOutline::dynamic];
  for (const PoolBlocks& blocks : outline.pool) plan.feature_maps += taken(blocks.bytes, blocks.count);
  plan.feature_maps += Bytes(outline.library_state.at(batch));
  for (const Alive& convolution : outline.convolutions)
    plan.workspace = std::max(plan.workspace, workspace_of(convolution, costs));
  plan.workspace = allocator.taken_for(plan.workspace);
  if (allocator.block == Bytes()) plan.context += rounded_by(plan.workspace, page);
  return plan;
}

}  // namespace

MemoryOutline memory_outline(const TrainingStep& step) try {
  if (step.kernels.empty()) return {};
  std::vector<Alive> alive = alive_at_kernels(step);
  MemoryOutline outline;
  for (std::size_t k = 0; k < alive.size(); ++k) {
    if (step.kernels[k].kind == KernelKind::convolution) outline.convolutions.push_back(alive[k]);
  }
  outline.peaks = highest(std::move(alive));
  outline.pool = planned_pool(step);
  outline.parameters = parameters_of(step);
  for (const Tensor& tensor : step.tensors) {
    if (tensor.library_state) outline.library_state += tensor.bytes;
  }
  return outline;
} catch (const std::overflow_error&) {
  throw ModelError("the tensors of a training step make more than 64 bits of bytes; expected smaller layers");
}

Bytes driver_page(const GpuSpec& gpu) {
  constexpr double kPascal = 6;
  constexpr Bytes kPage(2U << 20U);
  return gpu.compute_capability >= kPascal ? kPage : Bytes();
}

MemoryPlan plan_memory(const MemoryOutline& outline, const TrainingStep& step,
                       std::span<const KernelCost> costs, double batch, const Framework& framework,
                       Bytes page) {
  MemoryPlan plan;
  if (!outline.peaks.empty()) {
    plan = framework.allocator.planned ? plan_ahead(outline, costs, batch, framework.allocator, page)
                                       : plan_as_needed(outline, step, costs, batch, framework);
  }
  plan.context += framework.context_memory;
  return plan;
}

MemoryPlan on_one_of(std::int64_t gpus, MemoryPlan plan, const Framework& framework) {
  if (gpus < 2 || framework.lowering.parameter_copies == 0) return plan;
  plan.dynamic = plan.dynamic * (1.0 / static_cast<double>(gpus)) + plan.weight_gradients;
  return plan;
}

std::int64_t largest_batch(const std::function<bool(std::int64_t)>& fits, std::int64_t most) {
  if (!fits(1)) return 0;
  std::int64_t good = 1;
  std::int64_t bad = most + 1;
  while (bad - good > 1 && bad > most) {  // doubling finds the order
    const std::int64_t next = std::min(most, good * 2);
    (fits(next) ? good : bad) = next;
    if (good == most) return most;
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace tbdsim
