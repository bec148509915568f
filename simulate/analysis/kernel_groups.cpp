#include "simulate/analysis/kernel_groups.h"

#include <algorithm>
#include <map>

#include "simulate/analysis/kernel_names.h"
#include "simulate/prediction/utilization.h"

namespace tbdsim {
namespace {

// The group of kernels that belong to no layer, as updates of all parameters at once.
constexpr const char* kNoLayer = "(all)";

std::string group_of(const Kernel& kernel, Algorithm algorithm, const TrainingStep& step, const Prediction& p,
                     KernelView view) {
  switch (view) {
    case KernelView::kernel:
      return kernel_name(kernel, algorithm, p.framework->family, *p.gpu);
    case KernelView::layer:
      return kernel.layer < 0 ? kNoLayer : step.layers[static_cast<std::size_t>(kernel.layer)].name;
    case KernelView::phase:
      return std::string(phase_name(kernel));
    case KernelView::type:
      return kernel.layer < 0 ? kNoLayer : step.layers[static_cast<std::size_t>(kernel.layer)].type;
  }
  return {};
}

// A ratio to the single-precision peak.
double utilization(Flops flops, Seconds time, const GpuSpec& gpu) {
  return flops / (rate_of(gpu, MathType::fp32).peak * time);
}

}  // namespace

double average_fp32_utilization(const Prediction& p) {
  const Iteration& iteration = p.typical();
  Flops flops;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    if (kernel.kind == KernelKind::transfer) continue;
    flops += fp32_flops(kernel, iteration.costs[k], static_cast<double>(iteration.batch), *p.gpu) *
             static_cast<double>(kernel.repeat);
  }
  return utilization(flops, iteration.timeline.gpu_busy, *p.gpu);
}

Bound KernelGroup::bound() const {
  const auto* most = std::max_element(bound_time.begin(), bound_time.end());
  return static_cast<Bound>(most - bound_time.begin());
}

std::vector<KernelGroup> kernel_groups(const Prediction& p, KernelView view) {
  const Iteration& iteration = p.typical();
  std::map<std::string, KernelGroup> by_name;
  std::map<std::string, Seconds> kernel_time;  // without copies
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    const KernelCost& cost = iteration.costs[k];
    if (!cost.runs()) continue;
    const auto repeat = static_cast<double>(kernel.repeat);
    const std::string name = group_of(kernel, cost.algorithm, *iteration.step, p, view);
    KernelGroup& group = by_name[name];
    group.name = name;
    group.count += repeat;
    group.time += cost.total * repeat;
    group.share += busy_time(k, *iteration.step, iteration.costs, iteration.timeline) / iteration.time();
    group.bound_time[static_cast<std::size_t>(cost.bound)] += cost.total * repeat;
    if (kernel.kind == KernelKind::transfer) continue;
    kernel_time[name] += cost.total * repeat;
    group.fp32 += fp32_flops(kernel, cost, static_cast<double>(iteration.batch), *p.gpu) * repeat;
  }
  std::vector<KernelGroup> groups;
  for (auto& [name, group] : by_name) {
    if (const auto found = kernel_time.find(name); found != kernel_time.end())
      group.fp32_utilization = utilization(group.fp32, found->second, *p.gpu);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const KernelGroup& a, const KernelGroup& b) { return a.time > b.time; });
  return groups;
}

std::vector<KernelGroup> below_average(const Prediction& p, KernelView view, std::size_t most) {
  const double limit = average_fp32_utilization(p);
  std::vector<KernelGroup> groups = kernel_groups(p, view);
  std::erase_if(groups,
                [&](const KernelGroup& group) { return group.fp32_utilization.value_or(limit) >= limit; });
  groups.resize(std::min(groups.size(), most));
  return groups;
}

}  // namespace tbdsim
