#include "simulate/prediction/predict.h"

#include <algorithm>
#include <utility>

#include "simulate/timeline/activation_offload.h"

namespace tbdsim {
namespace {

// One thread's time to decode the samples of an iteration; 0 where nothing is decoded.
Seconds decode_time(const ResolvedScenario& r, double batch) {
  const bool decodes =
      r.framework->launch_model.input_threads > 0 && r.dataset != nullptr && r.dataset->decode_time;
  if (!decodes) return {};
  const double samples = batch * static_cast<double>(r.model->batches_per_iteration);
  return *r.dataset->decode_time * samples;
}

Iteration simulate_step(const ResolvedScenario& r, std::size_t length, EstimateCache* cache) {
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
  iteration.units = batch * (unit.per_sample + unit.per_length * step.bucket.mean_length);

  std::span<const FixedCost> fixed;
  if (!r.fixed_costs.empty()) fixed = *r.fixed_costs[length];
  iteration.costs = estimate(step.step, batch, *r.calibration, r.factors, fixed, cache);
  iteration.timeline = simulate_timeline(step.step, iteration.costs, batch, r.framework->launch_model);
  iteration.copies = offload_stall(iteration.on_host, iteration.timeline, batch, *r.calibration);
  iteration.decode = decode_time(r, batch);
  return iteration;
}

Flops flops_of(const Iteration& iteration) {
  const auto batch = static_cast<double>(iteration.batch);
  Flops flops;
  for (const auto& [kernel, times] : iteration.runs)
    flops += Flops(iteration.step->kernels[kernel].flops.at(batch)) * static_cast<double>(times);
  return flops;
}

GradientWidth gradient_width(const Prediction& p) {
  const Cluster& cluster = p.scenario.cluster;
  const bool wide = p.framework->sync.fp32_amp && p.precision->name == "amp";
  const double stored = static_cast<double>(wide ? kFp32Bytes : p.precision->storage_bytes);
  const double sent = cluster.gradient_bytes > 0 ? cluster.gradient_bytes : stored;
  return {.stored = stored, .sent = sent * cluster.compression};
}

void share_cores(Prediction& p) {
  double threads = p.framework->launch_model.input_threads;
  if (threads == 0) return;
  if (p.exchange && p.exchange->cores > 0) threads = std::min(threads, p.exchange->cores);
  for (Iteration& iteration : p.iterations) iteration.input = iteration.decode * (1 / threads);
}

// Buckets hold a copy of the gradients; ZeRO shards the optimizer state over the ranks.
void add_memory_of_exchange(Prediction& p) {
  if (!p.exchange) return;
  // Horovod has one fusion buffer, DistributedDataParallel has buckets for all gradients.
  Bytes& gradients = p.memory.use[MemoryCategory::weight_gradients];
  if (p.exchange->bucket > Bytes(0)) {
    const bool one_buffer = p.exchange->cycle > Seconds(0);
    gradients += one_buffer ? p.exchange->bucket : gradients;
  }
  Bytes& optimizer = p.memory.use[MemoryCategory::dynamic];
  if (p.exchange->method->shards_update) optimizer = optimizer * (1.0 / static_cast<double>(p.ranks()));
}

}  // namespace

void predict_exchange(Prediction& p) {
  share_cores(p);
  for (Iteration& iteration : p.iterations) {
    iteration.exchange = {};
    if (!p.exchange) continue;
    iteration.exchange =
        simulate_sync(*iteration.step, iteration.timeline, static_cast<double>(iteration.batch),
                      gradient_width(p), *p.gpu, *p.exchange);
  }
}

void predict_memory(Prediction& p) {
  const Bytes page = driver_page(*p.gpu);
  for (std::size_t i = 0; i < p.iterations.size(); ++i) {
    const Iteration& iteration = p.iterations[i];
    MemoryPlan plan = plan_memory(*iteration.memory, *iteration.step, iteration.costs,
                                  static_cast<double>(iteration.batch), *p.framework, page);
    if (p.framework->allocator.static_plan)
      plan.use[MemoryCategory::feature_maps] += p.library_state_beside(i);
    if (i > 0 && plan.total() <= p.memory.total()) continue;
    p.largest = i;
    p.memory = plan;
  }
  add_memory_of_exchange(p);
  p.fits = p.memory.total() <= p.gpu->memory_size;
}

Prediction predict(ResolvedScenario scenario, EstimateCache* cache) {
  Prediction p{std::move(scenario)};
  double shares = 0;
  for (std::size_t length = 0; length < p.steps->size(); ++length) {
    p.iterations.push_back(simulate_step(p, length, cache));
    shares += p.iterations.back().share;
  }
  for (Iteration& iteration : p.iterations) iteration.share /= shares;
  predict_exchange(p);
  predict_memory(p);
  p.flops = mean_over(p.iterations, flops_of);
  p.peak = rate_of(*p.gpu, p.precision->math).peak;
  return p;
}

Prediction predict(const Scenario& scenario, SpecCache& specs, EstimateCache* cache) {
  return predict(resolve(scenario, specs), cache);
}

}  // namespace tbdsim
