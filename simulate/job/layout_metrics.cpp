#include "simulate/job/layout_metrics.h"

#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

using Value = std::optional<double>;

template <Seconds StepParts::*Part>
Value share_of_step(const JobPrediction& p) {
  return p.layout.parts.*Part / p.layout.step;
}

template <std::int64_t ParallelLayout::*Number>
Value number_of_layout(const JobPrediction& p) {
  return static_cast<double>(p.layout.layout.*Number);
}

Value rent(const JobPrediction& p) {
  const auto& price = p.job->gpu->price_per_hour;
  if (!price) return std::nullopt;
  return price->si() * static_cast<double>(p.job->inputs.job.gpus);
}

Value cost_per_token(const JobPrediction& p) {
  const Value all = rent(p);
  return all ? Value(*all / p.layout.tokens_per_second) : std::nullopt;
}

constexpr auto kTime = MetricGroup::time;
constexpr auto kMemory = MetricGroup::memory;

const LayoutMetric kMetrics[] = {
    {{"step_time", kTime, "s", "time of a training step", nullptr},
     [](const JobPrediction& p) { return Value(p.layout.step.si()); }},
    {{"tokens_per_second", kTime, "tokens/s", "of all GPUs", nullptr},
     [](const JobPrediction& p) { return Value(p.layout.tokens_per_second); }},
    {{"tokens_per_second_low", kTime, "tokens/s", "lower end of the 80 % interval", nullptr},
     [](const JobPrediction& p) { return Value(p.tokens_interval().low); }},
    {{"tokens_per_second_high", kTime, "tokens/s", "upper end of the 80 % interval", nullptr},
     [](const JobPrediction& p) { return Value(p.tokens_interval().high); }},
    {{"mfu", kTime, kRatio, "operations of the model over the GPUs' peak", nullptr},
     [](const JobPrediction& p) { return Value(p.layout.mfu); }},
    {{"exposed_share", kTime, kRatio, "exposed communication over the step", nullptr},
     [](const JobPrediction& p) { return Value(p.layout.exposed() / p.layout.step); }},
    {{"bubble_share", kTime, kRatio, "waits of the pipeline over the step", nullptr},
     share_of_step<&StepParts::bubble>},
    {{"recompute_share", kTime, kRatio, "recomputation over the step", nullptr},
     share_of_step<&StepParts::again>},
    {{"memory", kMemory, "B", "of the fullest GPU, as nvidia-smi shows it", nullptr},
     [](const JobPrediction& p) { return Value(p.layout.most.device.si()); }},
    {{"rent", kTime, "USD/s", "of all GPUs", nullptr}, rent},
    {{"cost_per_token", kTime, "USD/token", "rent of all GPUs for a token", nullptr}, cost_per_token},
    {{"layout_dp", kTime, "ranks", "replicas of the layout, also where it was searched", nullptr},
     number_of_layout<&ParallelLayout::dp>},
    {{"layout_tp", kTime, "ranks", "tensor-parallel ranks", nullptr}, number_of_layout<&ParallelLayout::tp>},
    {{"layout_pp", kTime, "ranks", "stages", nullptr}, number_of_layout<&ParallelLayout::pp>},
    {{"layout_vp", kTime, "chunks", "of layers on a stage", nullptr}, number_of_layout<&ParallelLayout::vp>},
    {{"layout_cp", kTime, "ranks", "context-parallel ranks", nullptr}, number_of_layout<&ParallelLayout::cp>},
    {{"layout_ep", kTime, "ranks", "expert-parallel ranks", nullptr}, number_of_layout<&ParallelLayout::ep>},
    {{"layout_zero", kTime, "stage", "of ZeRO", nullptr},
     [](const JobPrediction& p) { return Value(p.layout.layout.zero); }},
    {{"layout_micro_batch", kTime, "sequences", "in one pass", nullptr},
     number_of_layout<&ParallelLayout::micro_batch>},
};

}  // namespace

std::span<const LayoutMetric> layout_metrics() { return kMetrics; }

const LayoutMetric& find_layout_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const LayoutMetric& known : kMetrics) {
    if (known.metric.name == name) return known;
    names.emplace_back(known.metric.name);
  }
  throw UsageError(fmt::format("unknown metric of layouts {}{}; expected one of {}", in_quotes(name),
                               did_you_mean(name, names), joined(names)));
}

}  // namespace tbdsim
