#include "simulate/metrics.h"

#include <array>

namespace tbdsim {
namespace {

using P = Prediction;
constexpr double kPercent = 100;

double kernel_count(const P& p) {
  double count = 0;
  for (const Kernel& kernel : p.step->kernels) count += static_cast<double>(kernel.repeat);
  return count;
}

double largest_batch_of(const P& p) {
  return static_cast<double>(largest_batch(*p.step, *p.framework, p.gpu->memory_size, kMostSamples));
}

constexpr std::string_view kSamplesPerSecond = "samples/s";

constexpr std::array<Metric, 17> kMetrics = {{
    {"throughput", MetricGroup::time, kSamplesPerSecond, "training samples in a second",
     [](const P& p) { return p.throughput(); }},
    {"iteration_time", MetricGroup::time, "s", "one training iteration",
     [](const P& p) { return p.timeline.iteration.si(); }},
    {"flop_utilization", MetricGroup::time, "%", "floating-point work over the peak of the arithmetic used",
     [](const P& p) { return kPercent * (p.flops / (p.peak * p.timeline.iteration)); }},
    {"achieved_rate", MetricGroup::time, "flop/s", "floating-point work in a second",
     [](const P& p) { return (p.flops / p.timeline.iteration).si(); }},
    {"compute_bound_share", MetricGroup::time, "%", "share of the iteration in kernels limited by arithmetic",
     [](const P& p) { return kPercent * p.share(Bound::compute); }},
    {"memory_bound_share", MetricGroup::time, "%",
     "share of the iteration in kernels limited by memory bandwidth",
     [](const P& p) { return kPercent * p.share(Bound::memory); }},
    {"overhead_bound_share", MetricGroup::time, "%",
     "share of the iteration in kernels limited by their start-up",
     [](const P& p) { return kPercent * p.share(Bound::overhead); }},
    {"kernel_count", MetricGroup::time, "kernels", "GPU kernels in one iteration", kernel_count},
    {"memory_weights", MetricGroup::memory, "B", "parameters and moving statistics",
     [](const P& p) { return p.memory.weights.si(); }},
    {"memory_weight_gradients", MetricGroup::memory, "B", "gradients of the parameters",
     [](const P& p) { return p.memory.weight_gradients.si(); }},
    {"memory_feature_maps", MetricGroup::memory, "B", "tensors kept for the backward pass, and gradient maps",
     [](const P& p) { return p.memory.feature_maps.si(); }},
    {"memory_workspace", MetricGroup::memory, "B", "the largest scratch memory of a kernel",
     [](const P& p) { return p.memory.workspace.si(); }},
    {"memory_dynamic", MetricGroup::memory, "B", "optimizer state and further copies of the parameters",
     [](const P& p) { return p.memory.dynamic.si(); }},
    {"memory_model", MetricGroup::memory, "B", "sum of the five categories at the peak",
     [](const P& p) { return p.memory.model().si(); }},
    {"memory_context", MetricGroup::memory, "B", "CUDA context and libraries, beside the five categories",
     [](const P& p) { return p.memory.context.si(); }},
    {"memory_total", MetricGroup::memory, "B", "model and context: what must fit",
     [](const P& p) { return p.memory.total().si(); }},
    {"largest_batch", MetricGroup::memory, "samples", "the largest batch that fits; 0 when none does",
     largest_batch_of},
}};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

std::string throughput_unit(const std::string& sample) { return sample + "s/s"; }

std::string unit_of(const Metric& metric, const Prediction& prediction) {
  return metric.unit == kSamplesPerSecond ? throughput_unit(prediction.step->sample)
                                          : std::string(metric.unit);
}

}  // namespace tbdsim
