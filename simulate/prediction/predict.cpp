#include "simulate/prediction/predict.h"

#include <algorithm>
#include <utility>

#include "costmodel/kernel_estimate.h"
#include "costmodel/step_power.h"
#include "simulate/prediction/host_input.h"
#include "simulate/prediction/scratch_memory.h"
#include "simulate/prediction/synced_norm_kernels.h"
#include "simulate/timeline/activation_offload.h"

namespace tbdsim {
namespace {

// One thread's time to decode the samples of an iteration; 0 where nothing is decoded.
Seconds decode_time(const ResolvedScenario& r, double batch) {
  return r.loader.sample_time * (batch * static_cast<double>(r.batches_read()));
}

Iteration simulate_step(const Prediction& r, std::size_t length, EstimateCache* cache) {
  const LengthStep& step = (*r.steps)[length];
  Iteration iteration;
  iteration.bucket = step.bucket;
  iteration.batch = r.batches[length];
  iteration.step = &step.step;
  iteration.memory = &step.memory;
  iteration.on_host = step.on_host;
  iteration.runs = step.runs;

  const auto batch = static_cast<double>(iteration.batch);
  iteration.share = step.bucket.share / batch;  // of samples -> of iterations
  const ThroughputUnit& unit = r.model->throughput;
  iteration.units = batch * static_cast<double>(step.step.batches) *
                    (unit.per_sample + unit.per_length * step.bucket.mean_length);

  std::span<const FixedCost> fixed;
  if (!r.fixed_costs.empty()) fixed = *r.fixed_costs[length];
  iteration.costs = estimate(step.step, batch, *r.calibration, r.factors, fixed, cache);
  iteration.plan = fit_scratch(r, length, batch, iteration.costs);
  simulate_alone(r, iteration);
  iteration.decode = decode_time(r, batch);
  return iteration;
}

Flops flops_of(const Iteration& iteration) {
  const auto batch = static_cast<double>(iteration.batch);
  Flops flops;
  for (const auto& [kernel, times, squares] : iteration.runs)
    flops += Flops(iteration.step->kernels[kernel].flops.at(batch)) * static_cast<double>(times);
  return flops;
}

GradientWidth gradient_width(const Prediction& p) {
  const Cluster& cluster = p.scenario.cluster;
  const bool wide = (p.framework->sync.fp32_amp && p.precision->name == "amp") ||
                    (p.sync && p.sync->method->fp32_variables);
  const double stored = static_cast<double>(wide                     ? kFp32Bytes
                                            : p.precision->fp32_copy ? p.precision->gradient_bytes
                                                                     : p.precision->storage_bytes);
  const double sent = cluster.gradient_bytes > 0 ? cluster.gradient_bytes : stored;
  return {.stored = stored, .sent = sent * cluster.compression};
}

// Time by which copies between the GPU and variables on the host lengthen the iteration.
Seconds own_copies(const Iteration& iteration, const LaunchModel& launch_model) {
  std::vector<KernelCost> costs = iteration.costs;
  bool any = false;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    if (kernel.kind != KernelKind::transfer || kernel.layer >= 0) continue;
    costs[k] = {};
    any = true;
  }
  if (!any) return {};
  const Timeline without =
      simulate_timeline(*iteration.step, costs, static_cast<double>(iteration.batch), launch_model);
  return std::max(Seconds(0), iteration.timeline.iteration - without.iteration);
}

// Costs of the step's kernels where each of so many ranks updates its share of the parameters: kernels of the
// update take that share of their time, their launch at least.
std::vector<KernelCost> sharing_update(std::vector<KernelCost> costs, const TrainingStep& step,
                                       std::int64_t ranks) {
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    if (kernel.phase != Phase::update || kernel.kind == KernelKind::transfer) continue;
    scale_within(costs[k], 1 / static_cast<double>(ranks), costs[k].overhead.si());
  }
  return costs;
}

// Lets the ranks share the update, or each do all of it, as the method says.
void share_update(const Prediction& p, Iteration& iteration) {
  run_alone(p, iteration);
  if (!p.sync || !p.sync->method->shards_update) return;
  iteration.costs_alone = iteration.costs;
  iteration.costs = sharing_update(std::move(iteration.costs), *iteration.step, p.ranks());
  iteration.timeline = simulate_timeline(*iteration.step, iteration.costs,
                                         static_cast<double>(iteration.batch), p.framework->launch_model);
}

}  // namespace

void run_alone(const Prediction& p, Iteration& iteration) {
  if (iteration.costs_alone.empty()) return;
  iteration.costs = std::exchange(iteration.costs_alone, {});
  iteration.timeline = simulate_timeline(*iteration.step, iteration.costs,
                                         static_cast<double>(iteration.batch), p.framework->launch_model);
}

void simulate_alone(const Prediction& p, Iteration& iteration) {
  const auto batch = static_cast<double>(iteration.batch);
  if (power_limits(*p.precision)) limit_by_power(*iteration.step, batch, *p.calibration, iteration.costs);
  iteration.timeline = simulate_timeline(*iteration.step, iteration.costs, batch, p.framework->launch_model,
                                         std::move(iteration.timeline));
  iteration.copies = offload_stall(iteration.on_host, iteration.timeline, batch, *p.calibration);
}

void predict_sync(Prediction& p) {
  share_host(p);
  for (Iteration& iteration : p.iterations) {
    iteration.sync = {};
    share_update(p, iteration);
    if (!p.sync) continue;
    const bool servers = p.sync->method->reduction_site == ReductionSite::host_servers;
    iteration.sync = simulate_sync(*iteration.step, iteration.timeline, static_cast<double>(iteration.batch),
                                   gradient_width(p), *p.gpu, *p.sync,
                                   servers ? own_copies(iteration, p.framework->launch_model) : Seconds(0));
    iteration.sync.contention += synced_norm_kernels(p, iteration);
  }
}

void predict_memory(Prediction& p) {
  p.largest = 0;
  for (std::size_t i = 1; i < p.iterations.size(); ++i) {  // of equals the longest, which grows most
    if (p.iterations[i].plan.total() >= p.iterations[p.largest].plan.total()) p.largest = i;
  }
  p.memory = p.iterations[p.largest].plan;
  p.fits = p.memory.needed() <= p.usable_memory();
}

Prediction predict(ResolvedScenario scenario, EstimateCache* cache) {
  Prediction p{std::move(scenario)};
  double shares = 0;
  for (std::size_t length = 0; length < p.steps->size(); ++length) {
    p.iterations.push_back(simulate_step(p, length, cache));
    shares += p.iterations.back().share;
  }
  for (Iteration& iteration : p.iterations) iteration.share /= shares;
  predict_sync(p);
  predict_memory(p);
  p.flops = mean_over(p.iterations, flops_of);
  p.peak = rate_of(*p.gpu, p.precision->convolution_math()).peak;
  return p;
}

Prediction predict(const Scenario& scenario, const Resolver& resolve, EstimateCache* cache) {
  return predict(resolve(scenario), cache);
}

}  // namespace tbdsim
