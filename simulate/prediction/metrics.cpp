#include "simulate/prediction/metrics.h"

#include <array>
#include <vector>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/pipe_utilization.h"
#include "simulate/prediction/time_to_target.h"
#include "simulate/prediction/utilization.h"

namespace tbdsim {
namespace {

using P = Prediction;

using Value = std::optional<double>;

Value kernel_count(const P& p) {
  double mean = 0;
  for (const Iteration& iteration : p.iterations) {
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      if (!iteration.costs[k].runs()) continue;
      const auto launches = static_cast<double>(iteration.step->kernels[k].repeat);
      mean += launches * iteration.share;
    }
  }
  return mean;
}

Value achieved_bandwidth(const P& p) {
  const Activity activity = activity_of(p);
  if (activity.gpu == Seconds(0)) return std::nullopt;
  const BytesPerSecond bandwidth = activity.moved / activity.gpu;
  return bandwidth.si();
}

template <double PipeUse::*pipe>
Value pipe_of(const P& p) {
  const std::optional<PipeUse> use = pipe_use(p);
  return use ? Value((*use).*pipe) : std::nullopt;
}

Value nvprof_level(const P& p) {
  const Seconds busy = times_of(p).gpu;
  if (busy == Seconds(0)) return std::nullopt;
  return nvprof_time(p) / busy;
}

// Peak of the arithmetic of products with weights where it is another one, fp8, as reports quote it.
FlopsPerSecond quoted_peak(const P& p) { return rate_of(*p.gpu, p.precision->weight_product_math()).peak; }

// Flop of a training step for each multiply-add of a layer's forward pass: forward 2, backward 2 by the input
// and 2 by the weights, unless these are frozen.
std::int64_t flop_of_forward_mac(const LayerSummary& layer) {
  const bool frozen = layer.frozen_parameters > 0 && layer.trained_parameters == 0;
  return frozen ? 4 : 6;
}

Value model_flop_utilization(const P& p) {
  const double flops = mean_over(p.iterations, [](const Iteration& iteration) {
    Size step;
    for (const LayerSummary& layer : iteration.step->layers)
      step += layer.forward_macs * flop_of_forward_mac(layer);
    return step.at(static_cast<double>(iteration.batch)) * static_cast<double>(iteration.step->batches);
  });
  if (flops == 0) return std::nullopt;
  return flops / (quoted_peak(p).si() * p.iteration_time().si());
}

Value hardware_flop_utilization(const P& p) {
  const double flops = mean_over(p.iterations, [](const Iteration& iteration) {
    double sum = 0;
    for (const auto& [kernel, times, squares] : iteration.runs) {
      const Kernel& k = iteration.step->kernels[kernel];
      if (k.macs != Size{})
        sum += k.flops.at(static_cast<double>(iteration.batch)) * static_cast<double>(times);
    }
    return sum;
  });
  if (flops == 0) return std::nullopt;
  return flops / (quoted_peak(p).si() * p.iteration_time().si());
}

Value tokens_per_second(const P& p) {
  const double tokens = mean_over(p.iterations, [](const Iteration& iteration) {
    return static_cast<double>(iteration.batch * iteration.step->batches) *
           static_cast<double>(iteration.bucket.length);
  });
  if (tokens == 0) return std::nullopt;
  return tokens * static_cast<double>(p.scenario.cluster.ranks()) / p.iteration_time().si();
}

template <class Q>
Value si_of(const std::optional<Q>& quantity) {
  return quantity ? Value(quantity->si()) : std::nullopt;
}

template <Limit limit>
Value share_of(const P& p) {
  return p.share(limit);
}

template <MemoryCategory category>
Value bytes_of(const P& p) {
  return p.memory.use[category].si();
}

template <auto part>
Value of_target(const P& p) {
  const auto time = time_to_target(p);
  return time ? part(*time) : std::nullopt;
}

constexpr std::string_view kSamplesPerSecond = "samples/s";

constexpr std::array<Metric, 46> kMetrics = {{
    {"throughput", MetricGroup::time, kSamplesPerSecond, "what the model's throughput counts, in a second",
     [](const P& p) -> Value { return p.throughput(); }},
    {"throughput_low", MetricGroup::time, kSamplesPerSecond,
     "80 % of measured throughputs are expected from here to throughput_high",
     [](const P& p) -> Value { return p.throughput_interval().low; }},
    {"throughput_high", MetricGroup::time, kSamplesPerSecond, "the other end of that interval",
     [](const P& p) -> Value { return p.throughput_interval().high; }},
    {"iteration_time", MetricGroup::time, "s", "one training iteration, the mean over its lengths",
     [](const P& p) -> Value { return p.iteration_time().si(); }},
    {"sample_throughput", MetricGroup::time, "1/s", "samples of the batch in a second",
     [](const P& p) -> Value { return p.samples_per_second(); }},
    {"epoch_time", MetricGroup::time, "s", "one pass over the data set",
     [](const P& p) { return si_of(p.epoch_time()); }},
    {"epoch_cost", MetricGroup::time, "USD", "the rent of all GPUs for that time",
     [](const P& p) { return si_of(p.epoch_cost()); }},
    {"price", MetricGroup::time, "USD", "what all GPUs cost", [](const P& p) { return si_of(p.price()); }},
    {"rent", MetricGroup::time, "USD/s", "the rent of all GPUs, on demand",
     [](const P& p) { return si_of(p.rent()); }},
    {"efficiency", MetricGroup::time, kRatio, "throughput over that of as many GPUs alone",
     [](const P& p) -> Value { return p.efficiency(); }},
    {"exposed_communication", MetricGroup::time, "s",
     "of an iteration: it waits for other GPUs, or is slowed by what they send",
     [](const P& p) -> Value { return p.exposed_time().si(); }},
    {"gpu_utilization", MetricGroup::time, kRatio, "time in which the GPU executes kernels, of the iteration",
     [](const P& p) -> Value { return gpu_utilization(times_of(p)); }},
    {"fp32_utilization", MetricGroup::time, kRatio,
     "single-precision operations executed over their peak, while the GPU is active",
     [](const P& p) { return fp32_utilization(activity_of(p), *p.gpu); }},
    {"nvprof_fp32_level", MetricGroup::time, kRatio,
     "an estimate of what nvprof reports for it; constants fitted to the paper's Tables V and VI",
     nvprof_level},
    {"tensor_core_utilization", MetricGroup::time, kRatio,
     "the same of tensor cores and their arithmetic; none on GPUs without",
     [](const P& p) { return tensor_core_utilization(activity_of(p), *p.gpu); }},
    {"fma_pipe_utilization", MetricGroup::time, kRatio,
     "what the single-precision pipe executes over its peak while kernels run", pipe_of<&PipeUse::fma>},
    {"fp16_pipe_utilization", MetricGroup::time, kRatio,
     "the same of packed half precision without tensor cores", pipe_of<&PipeUse::fp16>},
    {"tensor_pipe_utilization", MetricGroup::time, kRatio, "the same of tensor cores",
     pipe_of<&PipeUse::tensor>},
    {"sfu_pipe_utilization", MetricGroup::time, kRatio,
     "the same of reciprocals, roots, exponentials and logarithms", pipe_of<&PipeUse::special>},
    {"cpu_utilization", MetricGroup::time, kRatio,
     "an estimate: issuing thread and decoding of samples, over 28 cores",
     [](const P& p) -> Value { return cpu_utilization(times_of(p)); }},
    {"achieved_bandwidth", MetricGroup::time, "B/s",
     "bytes kernels move, of caches too, in a second of their time", achieved_bandwidth},
    {"flop_utilization", MetricGroup::time, kRatio,
     "nominal work over the peak of the arithmetic used: above 1 by Winograd and Fourier",
     [](const P& p) -> Value { return p.flops / (p.peak * p.iteration_time()); }},
    {"mfu", MetricGroup::time, kRatio,
     "model FLOP utilization: 6 x multiply-adds of a forward pass (6N a token and 12 L h S of attention, no "
     "scores "
     "left out), over the peak of the precision",
     model_flop_utilization},
    {"hfu", MetricGroup::time, kRatio,
     "hardware FLOP utilization: FLOP of the products and convolutions that run, recomputed ones among them, "
     "masked "
     "scores that a kernel leaves out not, over the same peak",
     hardware_flop_utilization},
    {"tokens_per_second", MetricGroup::time, "tokens/s",
     "positions of all sequences in a second, padding included; none without sequences", tokens_per_second},
    {"achieved_rate", MetricGroup::time, "flop/s", "nominal floating-point work in a second",
     [](const P& p) -> Value { return (p.flops / p.iteration_time()).si(); }},
    {"compute_bound_share", MetricGroup::time, kRatio,
     "share of the iteration in kernels limited by arithmetic", share_of<Limit::compute>},
    {"memory_bound_share", MetricGroup::time, kRatio,
     "share of the iteration in kernels limited by memory bandwidth", share_of<Limit::memory>},
    {"overhead_bound_share", MetricGroup::time, kRatio,
     "share of the iteration in kernels limited by their start-up", share_of<Limit::overhead>},
    {"launch_bound_share", MetricGroup::time, kRatio,
     "share of the iteration in which the GPU executes no kernel",
     [](const P& p) -> Value { return p.share(Limit::cpu) + p.share(Limit::input); }},
    {"input_bound_share", MetricGroup::time, kRatio, "the part of it in which the GPU waits for samples",
     share_of<Limit::input>},
    {"exchange_bound_share", MetricGroup::time, kRatio, "share of the iteration that waits for other GPUs",
     share_of<Limit::sync>},
    {"kernel_count", MetricGroup::time, "kernels", "GPU kernels in one iteration", kernel_count},
    {"epochs_to_target", MetricGroup::target, "epochs",
     "passes over the data set until the target is reached",
     of_target<[](const TimeToTarget& t) { return Value(t.epochs.epochs); }>},
    {"time_to_target", MetricGroup::target, "s", "until then, with start-up, evaluation and checkpoints",
     of_target<[](const TimeToTarget& t) { return Value(t.total().si()); }>},
    {"cost_to_target", MetricGroup::target, "USD", "the rent of all GPUs for that time",
     of_target<[](const TimeToTarget& t) { return si_of(t.cost); }>},
    {"energy_to_target", MetricGroup::target, "J", "for that time at the wall: GPUs, hosts, cooling",
     of_target<[](const TimeToTarget& t) { return Value(t.energy.wall.si()); }>},
    {"memory_weights", MetricGroup::memory, "B", "parameters and moving statistics",
     bytes_of<MemoryCategory::weights>},
    {"memory_weight_gradients", MetricGroup::memory, "B", "gradients of the parameters",
     bytes_of<MemoryCategory::weight_gradients>},
    {"memory_feature_maps", MetricGroup::memory, "B", "tensors kept for the backward pass, and gradient maps",
     bytes_of<MemoryCategory::feature_maps>},
    {"memory_workspace", MetricGroup::memory, "B", "the largest scratch memory of a kernel",
     bytes_of<MemoryCategory::workspace>},
    {"memory_dynamic", MetricGroup::memory, "B", "optimizer state and further copies of the parameters",
     bytes_of<MemoryCategory::dynamic>},
    {"memory_model", MetricGroup::memory, "B", "sum of the five categories at the peak",
     [](const P& p) -> Value { return p.memory.model().si(); }},
    {"memory_context", MetricGroup::memory, "B", "CUDA context and libraries, beside the five categories",
     [](const P& p) -> Value { return p.memory.context.si(); }},
    {"memory_total", MetricGroup::memory, "B", "model and context: what must fit",
     [](const P& p) -> Value { return p.memory.total().si(); }},
    {"largest_batch", MetricGroup::memory, "samples", "the largest batch that fits; 0 when none does",
     [](const P& p) -> Value { return static_cast<double>(p.largest_batch()); }},
}};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

const Metric& find_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return metric;
    names.emplace_back(metric.name);
  }
  throw UsageError("unknown metric " + in_quotes(name) + did_you_mean(name, names) +
                   " ('tbd-sim list metrics' names them)");
}

bool more_is_better(const Metric& metric) {
  const bool costs = metric.unit.starts_with("USD");
  const bool time_or_memory = metric.unit == "s" || metric.unit == "B";
  const bool other_use = metric.unit == "J" || metric.unit == "kernels" || metric.unit == "epochs";
  return !costs && !time_or_memory && !other_use;
}

std::string throughput_unit(const ModelFile& model) { return model.throughput.unit + "/s"; }

std::string unit_of(const Metric& metric, const Prediction& prediction) {
  return metric.unit == kSamplesPerSecond ? throughput_unit(*prediction.model) : std::string(metric.unit);
}

}  // namespace tbdsim
