#include "simulate/analysis/kernel_groups.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/analysis/kernel_names.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/kernel_table.h"

namespace tbdsim {
namespace {

// What kernels that belong to no layer are called, as updates of all parameters at once.
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

// In percent of the single-precision peak.
double utilization(Flops flops, Seconds time, const GpuSpec& gpu) {
  return 100 * (flops / (rate_of(gpu, MathType::fp32).peak * time));
}

// Of all kernels of the typical iteration while they run.
double average(const Prediction& p) {
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

Cell utilization_cell(std::optional<double> percent) {
  return percent ? number_cell(*percent, fmt::format("{:.1f}", *percent)) : Cell{};
}

}  // namespace

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
    group.share += busy_by(k, *iteration.step, iteration.costs, iteration.timeline) / iteration.time();
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
  const double limit = average(p);
  std::vector<KernelGroup> groups = kernel_groups(p, view);
  std::erase_if(groups,
                [&](const KernelGroup& group) { return group.fp32_utilization.value_or(limit) >= limit; });
  groups.resize(std::min(groups.size(), most));
  return groups;
}

Table kernel_group_table(const Prediction& p, KernelView view, const std::vector<KernelGroup>& groups) {
  Table table;
  table.name = "kernels";
  table.preface = kernel_preface(p);
  table.preface.emplace_back();
  const std::string by(kKernelViewNames[static_cast<std::size_t>(view)]);
  table.columns = {{"model", ""},        {"framework", ""},
                   {"gpu", ""},          {"precision", ""},
                   {"batch", ""},        {by, by},
                   {"count", "x", true}, {"time", "ms", true},
                   {"share", "%", true}, {"fp32_utilization", "FP32 %", true},
                   {"bound", "bound"}};
  for (const KernelGroup& group : groups) {
    table.rows.push_back({text_cell(p.model->name), text_cell(p.framework->name), text_cell(p.gpu->name),
                          text_cell(p.scenario.precision), count_cell(static_cast<double>(p.typical().batch)),
                          text_cell(group.name), count_cell(group.count),
                          number_cell(group.time.si(), fmt::format("{:.3f}", in_unit(group.time, "ms"))),
                          number_cell(group.share, fmt::format("{:.2f}", 100 * group.share)),
                          utilization_cell(group.fp32_utilization), text_cell(name_of(group.bound()))});
  }
  const Seconds time = p.typical().time();
  table.totals = {{"model", text_cell(p.model->name)},
                  {"framework", text_cell(p.framework->name)},
                  {"iteration_time", number_cell(time.si(), to_text(time))},
                  {"fp32_utilization", utilization_cell(average(p))}};
  if (view == KernelView::kernel)
    table.notes = {"Names as profilers show them; in parentheses the simulator's own, where none is known."};
  return table;
}

}  // namespace tbdsim
