#include "simulate/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace tbdsim {
namespace {

using Peak = MemoryOutline::Peak;
using Scratch = MemoryOutline::Scratch;

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

void add(MemoryOutline::Line& sum, const MemoryOutline::Line& bytes, double times) {
  sum.fixed += times * bytes.fixed;
  sum.per_sample += times * bytes.per_sample;
}

// What is alive at each kernel.
std::vector<Peak> alive_at_kernels(const TrainingStep& step) {
  // Bytes that come alive before, and die after, each kernel; their running sum is what is alive.
  const std::size_t last = step.kernels.size() - 1;
  std::vector<Peak> alive(last + 2);
  for (const Tensor& tensor : step.tensors) {
    const MemoryOutline::Line bytes{static_cast<double>(tensor.bytes.fixed),
                                     static_cast<double>(tensor.bytes.per_sample)};
    const std::size_t category = category_of(tensor.role);
    add(alive[std::min(static_cast<std::size_t>(tensor.first_use), last)].alive[category], bytes, 1);
    add(alive[std::min(static_cast<std::size_t>(tensor.last_use), last) + 1].alive[category], bytes, -1);
  }
  alive.pop_back();
  for (std::size_t k = 0; k < alive.size(); ++k) {
    alive[k].kernel = static_cast<int>(k);
    for (std::size_t c = 0; c < alive[k].alive.size(); ++c) {
      if (k > 0) add(alive[k].alive[c], alive[k - 1].alive[c], 1);
      add(alive[k].all, alive[k].alive[c], 1);
    }
  }
  return alive;
}

// Those to which none has both more for each sample and more fixed; of equals the first.
std::vector<Peak> highest(std::vector<Peak> alive) {
  std::stable_sort(alive.begin(), alive.end(), [](const Peak& a, const Peak& b) {
    return std::pair(a.all.per_sample, a.all.fixed) > std::pair(b.all.per_sample, b.all.fixed);
  });
  std::vector<Peak> peaks;
  for (const Peak& peak : alive) {
    if (peaks.empty() || peak.all.fixed > peaks.back().all.fixed) peaks.push_back(peak);
  }
  return peaks;
}

Bytes scratch_of(const Scratch& scratch, double batch, const Framework& framework) {
  const Bytes optional(scratch.optional.at(batch));
  return Bytes(scratch.needed.at(batch)) + (optional <= framework.workspace_limit ? optional : Bytes());
}

const Peak& highest_at(double batch, const std::vector<Peak>& peaks) {
  const auto below = [&](const Peak& a, const Peak& b) {
    return std::pair(a.all.at(batch), -a.kernel) < std::pair(b.all.at(batch), -b.kernel);
  };
  return *std::max_element(peaks.begin(), peaks.end(), below);
}

// The largest batches at which some kernel's workspace is still within the limit, ascending; then `most`.
std::vector<std::int64_t> workspace_drops(const MemoryOutline& outline, const Framework& framework,
                                          std::int64_t most) {
  std::set<std::int64_t> batches;
  for (const Scratch& scratch : outline.scratch) {
    if (scratch.optional.per_sample == 0) continue;
    const double spare = framework.workspace_limit.si() - static_cast<double>(scratch.optional.fixed);
    const double batch = std::floor(spare / static_cast<double>(scratch.optional.per_sample));
    if (batch >= 1 && batch < static_cast<double>(most)) batches.insert(static_cast<std::int64_t>(batch));
  }
  batches.insert(most);
  return {batches.begin(), batches.end()};
}

}  // namespace

MemoryOutline memory_outline(const TrainingStep& step) {
  if (step.kernels.empty()) return {};
  std::set<std::pair<Size, Size>> scratch;
  for (const Kernel& kernel : step.kernels) scratch.emplace(kernel.scratch_bytes, kernel.workspace_bytes);
  MemoryOutline outline{.peaks = highest(alive_at_kernels(step)), .scratch = {}};
  for (const auto& [needed, optional] : scratch) outline.scratch.push_back({needed, optional});
  return outline;
}

MemoryPlan plan_memory(const MemoryOutline& outline, double batch, const Framework& framework) {
  MemoryPlan plan;
  plan.context = framework.context_memory;
  if (outline.peaks.empty()) return plan;
  const Peak& peak = highest_at(batch, outline.peaks);
  const auto alive = [&](MemoryOutline::Category category) { return Bytes(peak.alive[category].at(batch)); };
  plan.peak_kernel = peak.kernel;
  plan.weights = alive(MemoryOutline::weights);
  plan.weight_gradients = alive(MemoryOutline::weight_gradients);
  plan.feature_maps = alive(MemoryOutline::feature_maps);
  plan.dynamic = alive(MemoryOutline::dynamic);
  for (const Scratch& scratch : outline.scratch) {
    plan.workspace = std::max(plan.workspace, scratch_of(scratch, batch, framework));
  }
  return plan;
}

std::int64_t largest_batch(const MemoryOutline& outline, const Framework& framework, Bytes capacity,
                           std::int64_t most) {
  const auto fits = [&](std::int64_t batch) {
    return plan_memory(outline, static_cast<double>(batch), framework).total() <= capacity;
  };
  // Memory grows with the batch except where a workspace passes the framework's limit and is dropped: between
  // such batches bisection finds the last one that fits. The highest stretch that has one wins.
  const std::vector<std::int64_t> ends = workspace_drops(outline, framework, most);
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
