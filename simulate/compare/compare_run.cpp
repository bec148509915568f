#include "simulate/compare/compare_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "graphs/kernel.h"

namespace tbdsim {
namespace {

using Key = std::pair<StepPart, std::string>;

struct Sum {
  double count = 0;
  Seconds time;
};
using Sums = std::map<Key, Sum>;

constexpr std::string_view kUpdate = name_of(KernelKind::update);
constexpr std::string_view kElementwise = name_of(KernelKind::elementwise);

StepPart part_of(const Kernel& kernel) {
  switch (kernel.phase) {
    case Phase::forward:
      return StepPart::forward;
    case Phase::update:
      return StepPart::update;
    default:
      return StepPart::backward;
  }
}

// All kernels of an update are one kind, whatever they do one by one: some frameworks launch a loop of
// element-wise kernels for what others do in one.
Key key_of(StepPart part, std::string kind, bool parts) {
  if (part == StepPart::update) kind = kUpdate;
  return {parts ? part : StepPart::unknown, std::move(kind)};
}

Sums predicted_sums(const Prediction& p, bool parts) {
  const Iteration& iteration = p.typical();
  Sums sums;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    const KernelCost& cost = iteration.costs[k];
    if (!cost.runs()) continue;
    Sum& sum = sums[key_of(part_of(kernel), std::string(name_of(kernel.kind)), parts)];
    const auto repeat = static_cast<double>(kernel.repeat);
    sum.count += repeat;
    sum.time += cost.total * repeat;
  }
  return sums;
}

Sums measured_sums(const MeasuredRun& run, double steps, bool parts) {
  Sums sums;
  for (const MeasuredKernel& kernel : run.kernels) {
    Sum& sum = sums[key_of(kernel.part, std::string(kernel.kind), parts)];
    sum.count += kernel.count / steps;
    sum.time += kernel.time * (1 / steps);
  }
  return sums;
}

// Moves updates to the element-wise kernels.
void merge_updates(Sums& sums) {
  const auto update = sums.find({StepPart::unknown, std::string(kUpdate)});
  if (update == sums.end()) return;
  Sum& into = sums[{StepPart::unknown, std::string(kElementwise)}];
  into.count += update->second.count;
  into.time += update->second.time;
  sums.erase(update);
}

Sum total_of(const Sums& sums) {
  Sum total;
  for (const auto& [key, sum] : sums) {
    total.count += sum.count;
    total.time += sum.time;
  }
  return total;
}

Seconds difference(const ComparedKernels& row) {
  return Seconds(std::abs(row.predicted.si() - row.measured.si()));
}

}  // namespace

Comparison compare_run(const Prediction& p, const MeasuredRun& run, double steps) {
  Comparison comparison;
  comparison.parts = std::any_of(run.kernels.begin(), run.kernels.end(), [](const MeasuredKernel& kernel) {
    return kernel.part != StepPart::unknown;
  });
  Sums predicted = predicted_sums(p, comparison.parts);
  Sums measured = measured_sums(run, steps, comparison.parts);
  if (!comparison.parts && !measured.contains({StepPart::unknown, std::string(kUpdate)})) {
    comparison.updates_merged = true;
    merge_updates(predicted);
  }
  const Sum all_predicted = total_of(predicted), all_measured = total_of(measured);
  const Seconds step = p.typical().time();
  comparison.predicted = {.kernels = all_predicted.count,
                          .kernel_time = all_predicted.time,
                          .step = step,
                          .idle = step - p.typical().timeline.gpu_busy,
                          .memory = p.memory.model()};
  comparison.measured = {
      .kernels = all_measured.count, .kernel_time = all_measured.time, .memory = run.memory_peak};
  if (run.span) comparison.measured.step = *run.span * (1 / steps);
  if (run.span && run.busy)
    comparison.measured.idle = Seconds(std::max(0.0, (run.span->si() - run.busy->si()) / steps));

  std::map<Key, ComparedKernels> rows;
  const auto row_of = [&](const Key& key) -> ComparedKernels& {
    ComparedKernels& row = rows[key];
    row.part = key.first;
    row.kind = key.second;
    return row;
  };
  for (const auto& [key, sum] : predicted) {
    row_of(key).predicted_count = sum.count;
    row_of(key).predicted = sum.time;
  }
  for (const auto& [key, sum] : measured) {
    row_of(key).measured_count = sum.count;
    row_of(key).measured = sum.time;
  }
  for (auto& [key, row] : rows) comparison.rows.push_back(std::move(row));
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [](const auto& a, const auto& b) { return difference(a) > difference(b); });
  return comparison;
}

ScaledStep scale_to(Comparison& comparison, const Prediction& here, const Prediction& there) {
  const bool parts = comparison.parts;
  Sums sums_here = predicted_sums(here, parts), sums_there = predicted_sums(there, parts);
  if (comparison.updates_merged) {
    merge_updates(sums_here);
    merge_updates(sums_there);
  }
  const double all = total_of(sums_there).time / total_of(sums_here).time;
  ScaledStep scaled;
  for (ComparedKernels& row : comparison.rows) {
    const auto a = sums_here.find({row.part, row.kind}), b = sums_there.find({row.part, row.kind});
    const bool predicted = a != sums_here.end() && b != sums_there.end();
    row.elsewhere = row.measured * (predicted ? b->second.time / a->second.time : all);
    scaled.kernel_time += *row.elsewhere;
  }
  if (comparison.measured.idle) scaled.step = scaled.kernel_time + *comparison.measured.idle;
  // The spread of the model on the other GPU; what it has in common with that on this one the measurement
  // takes away. Pairs of published runs that differ in the card alone: 93 % of 112 lie within it
  // (docs/import.md).
  scaled.factor = there.interval_factor();
  return scaled;
}

}  // namespace tbdsim
