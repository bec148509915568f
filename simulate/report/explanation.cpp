#include "simulate/report/explanation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "costmodel/estimate.h"
#include "costmodel/step_power.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/table.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/pipe_utilization.h"
#include "simulate/prediction/uncertainty.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/kernel_sources.h"
#include "simulate/report/kernel_table.h"

namespace tbdsim {
namespace {

constexpr std::size_t kWidth = 100;
constexpr double kWorthSaying = 0.005;  // of the iteration

Seconds time_of(const Iteration& i, std::size_t k) {
  return i.costs[k].total * static_cast<double>(i.step->kernels[k].repeat);
}

Bytes bytes_of(const Kernel& kernel, double batch) {
  return Bytes(kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch));
}

std::string work_step(const Prediction& p, const Iteration& i) {
  const auto batch = static_cast<double>(i.batch);
  double kernels = 0;
  Flops flops;
  Bytes bytes;
  for (std::size_t k = 0; k < i.costs.size(); ++k) {
    if (!i.costs[k].runs()) continue;
    const Kernel& kernel = i.step->kernels[k];
    const auto repeat = static_cast<double>(kernel.repeat);
    kernels += repeat;
    flops += Flops(kernel.flops.at(batch)) * repeat;
    bytes += bytes_of(kernel, batch) * repeat;
  }
  return fmt::format(
      "Work. {} (variant {}) trains on {} {}{}{} in an iteration. Its {} layers become {:.0f} kernels on {}: "
      "{} "
      "(a multiply-add is 2) and {} to and from memory.",
      p.model->title, p.scenario.variant, i.batch, p.model->sample, i.batch == 1 ? "" : "s",
      i.bucket.length == 0 ? "" : fmt::format(" of length {}", i.bucket.length), i.step->layers.size(),
      kernels, p.framework->title, to_text(flops), to_text(bytes));
}

// "measured, cudnn6 on this GPU".
std::string origin_of(const Prediction& p, const Iteration& i, std::size_t k) {
  const KernelSource source = source_of(p, i, k);
  const std::string name(name_of(i.costs[k].provenance));
  if (source.library.empty()) return name;
  return fmt::format("{}, {} on {}", name, source.library, source.on_this_gpu ? "this GPU" : "other GPUs");
}

// The kernel with the most time, and the source of each part of its time.
std::string kernel_step(const Prediction& p, const Iteration& i) {
  std::size_t longest = 0;
  for (std::size_t k = 0; k < i.costs.size(); ++k) {
    if (time_of(i, k) > time_of(i, longest)) longest = k;
  }
  const Kernel& kernel = i.step->kernels[longest];
  const KernelCost& cost = i.costs[longest];
  const auto batch = static_cast<double>(i.batch);
  const Flops flops = executed_flops(kernel, cost, batch);
  const Bytes bytes = bytes_of(kernel, batch);
  const FlopsPerSecond peak = rate_of(*p.gpu, cost.math).peak;
  return fmt::format(
      "Kernels. Each takes at least the longest of its arithmetic, its memory traffic and its overhead, "
      "which overlap "
      "in part. The one with the most time is {} {} of {}, {} times: arithmetic {} ({} at {:.0f} % of {}), "
      "memory {} "
      "({} at {:.0f} % of {}), overhead {}: {} each, limited by {}. That is {}, and 80 % of measurements are "
      "expected "
      "within +-{:.0f} %.",
      kernel.op, phase_name(kernel),
      kernel.layer < 0 ? "all layers" : i.step->layers[static_cast<std::size_t>(kernel.layer)].name,
      kernel.repeat, to_text(cost.compute), to_text(flops), kPercent * (flops / (peak * cost.total)),
      to_text(peak), to_text(cost.memory), to_text(bytes),
      kPercent * (bytes / (p.gpu->memory_bandwidth * cost.total)), to_text(p.gpu->memory_bandwidth),
      to_text(cost.overhead), to_text(cost.total), name_of(cost.bound), origin_of(p, i, longest),
      kPercent * (cost.factor() - 1));
}

// Time by which the board's power lengthens products and convolutions on tensor cores.
Seconds held_by_power(const Prediction& p, const Iteration& i) {
  if (!power_limits(*p.precision)) return {};
  const auto batch = static_cast<double>(i.batch);
  const std::vector<KernelCost> free = estimate(*i.step, batch, *p.calibration, p.factors);
  Seconds held;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const Kernel& kernel = i.step->kernels[k];
    if (power_of_product(kernel, batch, *p.calibration, free[k]) && i.costs[k].algorithm == free[k].algorithm)
      held += (i.costs[k].total - free[k].total) * static_cast<double>(kernel.repeat);
  }
  return held;
}

std::string sum_step(const Prediction& p, const Iteration& i) {
  std::array<Seconds, kBoundNames.size()> by_bound{};
  for (std::size_t k = 0; k < i.costs.size(); ++k)
    by_bound[static_cast<std::size_t>(i.costs[k].bound)] += time_of(i, k);
  std::string parts;
  for (std::size_t b = 0; b < by_bound.size(); ++b)
    parts += fmt::format("{}{} limited by {}", b == 0 ? "" : ", ", to_text(by_bound[b]), kBoundNames[b]);
  std::string sources;
  const ProvenanceShares shares = provenance_shares(i);
  for (std::size_t s = 0; s < shares.size(); ++s) {
    if (shares[s] > 0)
      sources += fmt::format("{}{:.0f} % {}", sources.empty() ? "" : ", ", kPercent * shares[s],
                             kProvenanceNames[s]);
  }
  const Seconds held = held_by_power(p, i);
  const std::string power =
      held < i.time() * kWorthSaying
          ? ""
          : fmt::format(" The board's {} hold its tensor cores back: products take {} more.",
                        to_text(p.gpu->tdp), to_text(held));
  return fmt::format("Sum. All kernels and copies together: {}.{} Of the iteration their times are {}.",
                     parts, power, sources);
}

// The part of the input that takes longest for the samples of an iteration: storage, copies to the GPU or the
// threads that decode.
std::string input_step(const Prediction& p, const Iteration& i) {
  if (i.input == i.read)
    return fmt::format("{} to read a batch, {} each.", to_text(i.read), to_text(p.loader.read_time));
  if (i.input == i.input_copy) return fmt::format("{} to copy a batch to the GPU.", to_text(i.input_copy));
  return fmt::format("{} to decode a batch, {} each, {:.4g} at a time.", to_text(i.input),
                     to_text(p.loader.sample_time), i.decode / i.input);
}

std::string clock_step(const Prediction& p, const Iteration& i) {
  const Seconds idle = std::max(Seconds(0), i.time() - i.timeline.gpu_busy);
  std::string text = fmt::format(
      "Two clocks. One thread issues kernels ({} of its time is work, {} each and waits where {} waits), the "
      "GPU "
      "executes them in order: {} active and {} idle make {} for the iteration.",
      to_text(i.timeline.cpu_busy), to_text(p.framework->launch_model.launch_overhead), p.framework->title,
      to_text(i.timeline.gpu_busy), to_text(idle), to_text(i.time()));
  if (i.decodes_in_loop) {
    text += fmt::format(" The training loop decodes the samples itself: {} for a batch, {} each.",
                        to_text(i.input), to_text(p.loader.sample_time));
  } else if (i.input > i.computing()) {
    text += " Samples come no faster: " + input_step(p, i);
  }
  if (i.copies_in_order && i.input_copy > Seconds(0))
    text +=
        fmt::format(" The batch is copied to the GPU between two iterations, in {}.", to_text(i.input_copy));
  return text;
}

// Four digits, or all before the point.
std::string four_digits(double rate) {
  constexpr double kFourDigits = 1000;
  return rate >= kFourDigits ? fmt::format("{:.0f}", rate) : fmt::format("{:.4g}", rate);
}

std::string throughput_step(const Prediction& p) {
  const Interval interval = p.throughput_interval();
  const std::string mean =
      p.iterations.size() > 1
          ? fmt::format("Over the {} lengths of the data set the mean iteration takes {}. ",
                        p.iterations.size(), to_text(p.iteration_time()))
          : "";
  return fmt::format(
      "Throughput. {}{} {} in {} are {} {}. 80 % of measurements are expected within a factor of {:.2f}: {} "
      "to {}. Of these {:.0f} %, parts that add as squares: {}.",
      mean, four_digits(p.throughput() * p.iteration_time().si()), p.model->throughput.unit,
      to_text(p.iteration_time()), four_digits(p.throughput()), throughput_unit(*p.model),
      p.interval_factor(), four_digits(interval.low), four_digits(interval.high),
      kPercent * (p.interval_factor() - 1), parts_text(deviations_of(p)));
}

std::string utilization_step(const Prediction& p) {
  const Activity a = activity_of(p);
  std::string text = fmt::format("Utilization. GPU: {} active of {} are {:.1f} % (the paper's equation 1).",
                                 to_text(a.gpu), to_text(a.time), kPercent * gpu_utilization(a));
  if (const auto fp32 = fp32_utilization(a, *p.gpu)) {
    text += fmt::format(" FP32: {} executed of the {} that {} does in that time are {:.1f} % (equation 2).",
                        to_text(a.fp32), to_text(rate_of(*p.gpu, MathType::fp32).peak * a.gpu), p.gpu->title,
                        kPercent * *fp32);
  }
  if (const auto pipes = pipe_use(p)) {
    text += fmt::format(
        " Of the pipes' peaks while kernels run: FMA {:.1f} %, FP16 {:.1f} %, tensor cores {:.1f} %, special "
        "functions {:.1f} %.",
        kPercent * pipes->fma, kPercent * pipes->fp16, kPercent * pipes->tensor, kPercent * pipes->special);
  }
  return text;
}

std::string memory_step(const Prediction& p) {
  const MemoryPlan& m = p.memory;
  const std::string fragments =
      m.fragments > Bytes() ? fmt::format(" and {} in fragments", to_text(m.fragments)) : "";
  return fmt::format(
      "Memory. When most is alive: weights {}, gradients {}, feature maps {}, workspace {}, dynamic {}, and "
      "the CUDA context {}: {}{} of {}, which {}. The largest batch that fits is {}.",
      to_text(m.use[MemoryCategory::weights]), to_text(m.use[MemoryCategory::weight_gradients]),
      to_text(m.use[MemoryCategory::feature_maps]), to_text(m.use[MemoryCategory::workspace]),
      to_text(m.use[MemoryCategory::dynamic]), to_text(m.context), to_text(m.total()), fragments,
      to_text(p.usable_memory()), p.fits ? "fits" : "does not fit: the throughput is hypothetical",
      p.largest_batch());
}

}  // namespace

std::vector<std::string> explanation(const Prediction& p) {
  const Iteration& i = p.typical();
  std::vector<std::string> lines;
  int number = 0;
  for (const std::string& step : {work_step(p, i), kernel_step(p, i), sum_step(p, i), clock_step(p, i),
                                  throughput_step(p), utilization_step(p), memory_step(p)}) {
    for (const std::string& line : wrapped(fmt::format("{}. {}", ++number, step), kWidth))
      lines.push_back(line);
  }
  return lines;
}

}  // namespace tbdsim
