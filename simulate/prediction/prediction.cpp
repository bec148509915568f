#include "simulate/prediction/prediction.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "graphs/token_batch.h"
#include "hwspecs/base/error.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/timeline/activation_offload.h"

namespace tbdsim {
namespace {

MathType math_of(const Prediction& p) { return find_precision(p.scenario.precision).math; }

template <class Term>
auto mean_over(const std::vector<Iteration>& iterations, Term term) {
  decltype(term(iterations[0]) * 1.0) sum{};
  for (const Iteration& iteration : iterations) sum += term(iteration) * iteration.share;
  return sum;
}

// The batch of samples padded to a length, as asked for.
std::int64_t batch_of(const Scenario& scenario, const Variant& variant, std::int64_t length) {
  if (scenario.tokens == 0) return scenario.batch;
  const std::int64_t shortest = variant.buckets.empty() ? length : variant.buckets.front();
  return token_batch(variant.token_batches, scenario.tokens, length, shortest);
}

Iteration simulate(const LengthStep& step, const Variant& variant, SpecCache& specs, Prediction& p) {
  Iteration iteration;
  iteration.bucket = step.bucket;
  iteration.batch = batch_of(p.scenario, variant, step.bucket.length);
  const std::int64_t most = p.model->largest_batch;
  if (most > 0 && iteration.batch > most) {
    iteration.batch = most;
    p.batch_limited = true;
  }
  iteration.share = step.bucket.share / static_cast<double>(iteration.batch);  // of samples -> of iterations
  const ThroughputUnit& unit = p.model->throughput;
  iteration.units =
      static_cast<double>(iteration.batch) * (unit.per_sample + unit.per_length * step.bucket.mean_length);
  iteration.step = &step.step;
  iteration.memory = &step.memory;
  iteration.on_host = step.on_host;
  iteration.runs = step.runs;
  const auto batch = static_cast<double>(iteration.batch);
  const KernelFactors factors = factors_on(*p.framework, *p.gpu, math_of(p));
  iteration.costs = estimate(step.step, batch, *p.calibration, factors,
                             specs.fixed_costs(step.step, *p.calibration, factors));
  const LaunchModel& launch_model = p.framework->launch_model;
  iteration.timeline = simulate_timeline(step.step, iteration.costs, batch, launch_model);
  iteration.copies = offload_stall(iteration.on_host, iteration.timeline, batch, *p.calibration);
  if (launch_model.input_threads > 0 && p.dataset != nullptr && p.dataset->decode_time) {
    const double samples = batch * static_cast<double>(p.model->batches_per_iteration);
    iteration.decode = *p.dataset->decode_time * samples;
  }
  return iteration;
}

// Buckets hold a copy of the gradients; ZeRO spreads what the optimizer keeps over the ranks.
void add_memory_of_exchange(Prediction& p) {
  if (!p.exchange) return;
  // Horovod has one buffer for messages, DistributedDataParallel buckets for all gradients.
  if (p.exchange->bucket > Bytes(0))
    p.memory.use[MemoryCategory::weight_gradients] +=
        p.exchange->cycle > Seconds(0) ? p.exchange->bucket : p.memory.use[MemoryCategory::weight_gradients];
  if (p.exchange->method->shards_update)
    p.memory.use[MemoryCategory::dynamic] =
        p.memory.use[MemoryCategory::dynamic] * (1.0 / static_cast<double>(p.ranks()));
}

// A library's state for a layer is kept for every length, where memory is planned for each.
Bytes state_of_others(const Prediction& p, std::size_t length) {
  Bytes sum;
  for (std::size_t i = 0; i < p.iterations.size(); ++i) {
    const Iteration& other = p.iterations[i];
    if (i != length) sum += Bytes(other.memory->library_state.at(static_cast<double>(other.batch)));
  }
  return sum;
}

void plan_memory_of_largest(Prediction& p) {
  for (std::size_t i = 0; i < p.iterations.size(); ++i) {
    const Iteration& iteration = p.iterations[i];
    MemoryPlan plan = plan_memory(*iteration.memory, *iteration.step, iteration.costs,
                                  static_cast<double>(iteration.batch), *p.framework, driver_page(*p.gpu));
    if (p.framework->allocator.static_plan) plan.use[MemoryCategory::feature_maps] += state_of_others(p, i);
    if (i > 0 && plan.total() <= p.memory.total()) continue;
    p.largest = i;
    p.memory = plan;
  }
  add_memory_of_exchange(p);
  p.fits = p.memory.total() <= p.gpu->memory_size;
}

Flops flops_of(const Iteration& iteration) {
  Flops flops;
  for (const auto& [kernel, times] : iteration.runs) {
    flops += Flops(iteration.step->kernels[kernel].flops.at(static_cast<double>(iteration.batch))) *
             static_cast<double>(times);
  }
  return flops;
}

// Copies are no kernels: while one runs the GPU is idle, and the CPU waits or could issue.
Seconds limited_time(const Iteration& iteration, Limit limit) {
  const Seconds alone = iteration.computing() + iteration.exchange.added();
  if (limit == Limit::input) return iteration.time() - alone;
  if (limit == Limit::exchange) return iteration.exchange.added();
  if (limit == Limit::cpu) return iteration.computing() - iteration.timeline.gpu_busy;
  Seconds sum;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    const bool limited = static_cast<Limit>(iteration.costs[k].bound) == limit;
    if (kernel.kind != KernelKind::transfer && limited)
      sum += busy_time(k, *iteration.step, iteration.costs, iteration.timeline);
  }
  return sum;
}

FlopsPerSecond peak_of(const Prediction& p) { return rate_of(*p.gpu, math_of(p)).peak; }

// Of one element as it is sent.
double gradient_bytes(const Prediction& p) {
  const Cluster& cluster = p.scenario.cluster;
  const bool wide = p.framework->exchange.fp32_amp && p.scenario.precision == "amp";
  const double stored =
      static_cast<double>(wide ? kFp32Bytes : find_precision(p.scenario.precision).storage_bytes);
  return (cluster.gradient_bytes > 0 ? cluster.gradient_bytes : stored) * cluster.compression;
}

// Threads that decode for the GPUs of one machine share its cores.
void share_cores(Prediction& p) {
  double threads = p.framework->launch_model.input_threads;
  if (threads == 0) return;
  if (p.exchange && p.exchange->cores > 0) threads = std::min(threads, p.exchange->cores);
  for (Iteration& iteration : p.iterations) iteration.input = iteration.decode * (1 / threads);
}

void sync_gradients(Prediction& p) {
  share_cores(p);
  if (!p.exchange) return;
  for (Iteration& iteration : p.iterations) {
    iteration.exchange =
        simulate_sync(*iteration.step, iteration.timeline, static_cast<double>(iteration.batch),
                      gradient_bytes(p), *p.gpu, *p.exchange);
  }
}

// Those that fit the longest bucket; 0 where the data set has no epoch.
double samples_of_epoch(const Dataset& dataset, const Variant& variant) {
  const double all = static_cast<double>(dataset.samples.value_or(0));
  return variant.buckets.empty() ? all : all * share_within(dataset.lengths, variant.buckets.back());
}

// A data set given by the user must be of what the model trains.
void require_same_samples(const Dataset& dataset, const ModelFile& model, bool given) {
  if (!given || dataset.sample == model.sample) return;
  throw UsageError("data set " + dataset.name + " is of " + dataset.sample + "s; " + model.name + " trains " +
                   model.sample + "s");
}

void require_range(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kMostSamples) return;
  throw UsageError(std::string(what) + " " + std::to_string(value) +
                   " is out of range; expected 1 to 1000000000");
}

}  // namespace

void scale(std::vector<KernelCost>& costs, const TrainingStep& step, const KernelFactors& factors) {
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const double factor = factors[index_of(step.kernels[k].kind)];
    for (Seconds* time : {&costs[k].compute, &costs[k].memory, &costs[k].overhead, &costs[k].total}) {
      *time = *time * factor;
    }
  }
}

Seconds Prediction::iteration_time() const {
  return mean_over(iterations, [](const Iteration& i) { return i.time(); });
}

double Prediction::batch() const {
  return mean_over(iterations, [](const Iteration& i) { return static_cast<double>(i.batch); });
}

double Prediction::throughput() const {
  const double units = mean_over(iterations, [](const Iteration& i) { return i.units; });
  return units * static_cast<double>(ranks()) / iteration_time().si();
}

double Prediction::samples_per_second() const {
  return batch() * static_cast<double>(ranks()) / iteration_time().si();
}

double Prediction::interval_factor() const {
  const Iteration& iteration = typical();
  return std::exp(kEightyPercent * combined_sd(*iteration.step, iteration.costs));
}

Interval Prediction::throughput_interval() const {
  const double factor = interval_factor();
  return {throughput() / factor, throughput() * factor};
}

double Prediction::efficiency() const {
  return mean_over(iterations, [](const Iteration& i) { return i.time_alone(); }) / iteration_time();
}

Seconds Prediction::exposed_time() const {
  return mean_over(iterations, [](const Iteration& i) { return i.time() - i.time_alone(); });
}

double Prediction::share(Limit limit) const {
  const Seconds limited = mean_over(iterations, [&](const Iteration& i) { return limited_time(i, limit); });
  return limited / iteration_time();
}

Limit Prediction::bound() const {
  Limit largest_share = Limit::compute;
  for (const Limit candidate : {Limit::memory, Limit::overhead, Limit::cpu, Limit::input, Limit::exchange}) {
    if (share(candidate) > share(largest_share)) largest_share = candidate;
  }
  return largest_share;
}

const Iteration& Prediction::typical() const {
  return *std::max_element(iterations.begin(), iterations.end(), [](const Iteration& a, const Iteration& b) {
    return a.time() * a.share < b.time() * b.share;
  });
}

std::int64_t Prediction::largest_batch() const {
  const auto holds = [this](std::int64_t samples) { return memory_at(samples).total() <= gpu->memory_size; };
  return tbdsim::largest_batch(holds, model->largest_batch > 0 ? model->largest_batch : kMostSamples);
}

MemoryPlan Prediction::memory_at(std::int64_t batch) const {
  const Iteration& iteration = iterations[largest];
  const auto samples = static_cast<double>(batch);
  std::vector<KernelCost> costs(iteration.costs.size());
  for (const MemoryOutline::Alive& convolution : iteration.memory->convolutions) {
    const auto at = static_cast<std::size_t>(convolution.kernel);
    const Kernel& kernel = iteration.step->kernels[at];
    costs[at] = kernel.duplicate_of < 0 ? estimate(kernel, samples, *calibration)
                                        : costs[static_cast<std::size_t>(kernel.duplicate_of)];
  }
  MemoryPlan plan =
      plan_memory(*iteration.memory, *iteration.step, costs, samples, *framework, driver_page(*gpu));
  if (framework->allocator.static_plan) {
    const double scale = samples / static_cast<double>(iteration.batch);
    plan.use[MemoryCategory::feature_maps] += state_of_others(*this, largest) * scale;
  }
  return plan;
}

std::optional<Seconds> Prediction::epoch_time() const {
  if (samples_trained_on == 0) return std::nullopt;
  const double in_iteration = batch() * static_cast<double>(model->batches_per_iteration * ranks());
  return iteration_time() * (samples_trained_on / in_iteration);
}

std::optional<Dollars> Prediction::epoch_cost() const {
  const auto time = epoch_time();
  const auto rent_of_all = rent();
  return time && rent_of_all ? std::optional(*rent_of_all * *time) : std::nullopt;
}

std::optional<Dollars> Prediction::price() const {
  return gpu->price ? std::optional(*gpu->price * static_cast<double>(ranks())) : std::nullopt;
}

std::optional<DollarsPerSecond> Prediction::rent() const {
  return gpu->price_per_hour ? std::optional(*gpu->price_per_hour * static_cast<double>(ranks()))
                             : std::nullopt;
}

Prediction predict(const Scenario& scenario, SpecCache& specs) {
  require_range("batch", scenario.batch, 1);
  require_range("tokens", scenario.tokens, 0);
  require_cluster(scenario.cluster);
  if (scenario.gpu.empty() && !scenario.cluster.machine.empty()) {
    Scenario with_gpu = scenario;
    with_gpu.gpu = specs.machine(scenario.cluster.machine).gpu;
    return predict(with_gpu, specs);
  }
  Prediction p;
  p.scenario = scenario;
  p.batch_asked = scenario.batch;
  p.gpu = &specs.gpu(scenario.gpu);
  p.framework = &specs.framework(scenario.framework);
  p.calibration = &specs.calibration(scenario.gpu, scenario.profile, scenario.framework);
  p.profile = p.calibration->profile;
  const Precision& precision = find_precision(scenario.precision);
  p.model = &specs.model(scenario.model);
  const Variant& variant = find_variant(*p.model, scenario.variant, p.framework->family);
  p.scenario.variant = variant.name;
  const std::string& dataset = scenario.dataset.empty() ? variant.dataset : scenario.dataset;
  p.dataset = dataset.empty() ? nullptr : &specs.dataset(dataset);
  if (p.dataset != nullptr) {
    require_same_samples(*p.dataset, *p.model, !scenario.dataset.empty());
    p.samples_trained_on = samples_of_epoch(*p.dataset, variant);
  }
  if (scenario.tokens > 0 && !p.model->sizes.contains(std::string(kLengthSize))) {
    throw UsageError(p.model->name + " has no sequences to count tokens of");
  }
  if (scenario.cluster.ranks() > 1)
    p.exchange =
        plan_sync(scenario.cluster, *p.gpu, *p.framework, machine_for(scenario.cluster, *p.gpu, specs));
  double shares = 0;
  for (const LengthStep& step :
       specs.workload(scenario.model, variant, scenario.framework, precision, dataset, scenario.sizes)) {
    p.iterations.push_back(simulate(step, variant, specs, p));
    shares += p.iterations.back().share;
  }
  for (Iteration& iteration : p.iterations) iteration.share /= shares;
  sync_gradients(p);
  if (p.batch_limited) p.scenario.batch = p.model->largest_batch;
  plan_memory_of_largest(p);
  p.flops = mean_over(p.iterations, flops_of);
  p.peak = peak_of(p);
  return p;
}

Prediction with_rates(Prediction p, const GpuSpec& gpu) {
  p.own_calibration = std::make_shared<const Calibration>(with_rates(*p.calibration, gpu));
  p.calibration = p.own_calibration.get();
  const KernelFactors factors = factors_on(*p.framework, gpu, math_of(p));
  for (Iteration& iteration : p.iterations) {
    const auto batch = static_cast<double>(iteration.batch);
    iteration.costs = estimate_again(*iteration.step, batch, *p.calibration, std::move(iteration.costs),
                                     iteration.demands, factors);
    iteration.timeline = simulate_timeline(*iteration.step, iteration.costs, batch, p.framework->launch_model,
                                           std::move(iteration.timeline));
    iteration.copies = offload_stall(iteration.on_host, iteration.timeline, batch, *p.calibration);
  }
  p.gpu = &gpu;
  sync_gradients(p);
  plan_memory_of_largest(p);  // other rates, other algorithms, other workspaces
  p.peak = peak_of(p);
  return p;
}

Prediction with_sync(Prediction p, const std::optional<SyncPlan>& exchange) {
  p.scenario.cluster = exchange ? exchange->cluster : Cluster{};
  p.exchange = exchange;
  for (Iteration& iteration : p.iterations) iteration.exchange = {};
  sync_gradients(p);
  plan_memory_of_largest(p);
  return p;
}

Prediction with_cluster(Prediction p, const Cluster& cluster, SpecCache& specs) {
  require_cluster(cluster);
  std::optional<SyncPlan> exchange;
  if (cluster.ranks() > 1)
    exchange = plan_sync(cluster, *p.gpu, *p.framework, machine_for(cluster, *p.gpu, specs));
  p = with_sync(std::move(p), exchange);
  p.scenario.cluster = cluster;
  return p;
}

Seconds iteration_time_with(const Framework& framework, const Prediction& prediction) {
  KernelFactors ratios = factors_on(framework, *prediction.gpu, math_of(prediction));
  const KernelFactors before = factors_on(*prediction.framework, *prediction.gpu, math_of(prediction));
  for (std::size_t kind = 0; kind < ratios.size(); ++kind) ratios[kind] /= before[kind];
  return mean_over(prediction.iterations, [&](const Iteration& iteration) {
    std::vector<KernelCost> costs = iteration.costs;
    scale(costs, *iteration.step, ratios);
    const auto batch = static_cast<double>(iteration.batch);
    const Timeline timeline = simulate_timeline(*iteration.step, costs, batch, framework.launch_model);
    return std::max(timeline.iteration + iteration.copies + iteration.exchange.added(), iteration.input);
  });
}

}  // namespace tbdsim
