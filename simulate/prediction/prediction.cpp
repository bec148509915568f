#include "simulate/prediction/prediction.h"

#include <algorithm>
#include <cmath>

#include "costmodel/kernel_estimate.h"
#include "simulate/prediction/scratch_memory.h"
#include "simulate/prediction/uncertainty.h"

namespace tbdsim {
namespace {

// Time of an iteration with this limit. While a copy runs the GPU counts as idle: the limit is the CPU.
Seconds limited_time(const Iteration& iteration, Limit limit) {
  const Seconds alone = iteration.computing() + iteration.sync.added();
  if (limit == Limit::input) return iteration.time() - alone;
  if (limit == Limit::sync) return iteration.sync.added();
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

// Samples that fit the longest bucket; 0 where the data set has no number of samples.
double samples_of_epoch(const ResolvedScenario& r) {
  if (r.dataset == nullptr) return 0;
  const double all = static_cast<double>(r.dataset->samples.value_or(0));
  const std::vector<std::int64_t>& buckets = r.variant->buckets;
  return buckets.empty() ? all : all * share_within(r.dataset->lengths, buckets.back());
}

}  // namespace

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
  return batch() * static_cast<double>(scenario.training.accumulate * ranks()) / iteration_time().si();
}

double Prediction::interval_factor() const {
  return std::exp(kEightyPercent * total_deviation(deviations_of(*this)));
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
  for (const Limit candidate : {Limit::memory, Limit::overhead, Limit::cpu, Limit::input, Limit::sync}) {
    if (share(candidate) > share(largest_share)) largest_share = candidate;
  }
  return largest_share;
}

const Iteration& Prediction::typical() const {
  return *std::max_element(iterations.begin(), iterations.end(), [](const Iteration& a, const Iteration& b) {
    return a.time() * a.share < b.time() * b.share;
  });
}

Bytes Prediction::usable_memory() const {
  const Bytes free_at_start = gpu->usable_memory - framework->context_memory;
  const Bytes left_free = std::max(Bytes(), free_at_start) * framework->allocator.left_free;
  return gpu->usable_memory - Bytes(std::ceil(left_free.si()));
}

namespace {

MemoryPlan memory_of(const Prediction& p, std::size_t length, std::int64_t batch) {
  const auto& [bucket, step, on_host, memory, runs] = (*p.steps)[length];
  const auto samples = static_cast<double>(batch);
  std::vector<KernelCost> costs(step.kernels.size());  // of convolutions
  for (const MemoryOutline::Alive& convolution : memory.convolutions) {
    const auto k = static_cast<std::size_t>(convolution.kernel);
    const int same = step.kernels[k].duplicate_of;
    if (same < 0) {
      estimate_anew(step, k, samples, *p.calibration, p.factors, costs);
    } else {
      costs[k] = costs[static_cast<std::size_t>(same)];
    }
  }
  return fit_scratch(p, length, samples, costs);
}

}  // namespace

// The length that needs most memory at the scenario's batch may not be the one that does at a larger batch.
std::int64_t Prediction::largest_batch() const {
  const auto fits_with = [this](std::size_t length) {
    return [this, length](std::int64_t batch) {
      return memory_of(*this, length, batch).needed() <= usable_memory();
    };
  };
  const std::int64_t limit = model->largest_batch > 0 ? model->largest_batch : kMostSamples;
  std::int64_t most = tbdsim::largest_batch(fits_with(largest), limit);
  for (std::size_t length = 0; length < iterations.size() && most > 0; ++length) {
    if (!fits_with(length)(most)) most = tbdsim::largest_batch(fits_with(length), most);
  }
  return most;
}

MemoryPlan Prediction::memory_at(std::int64_t batch) const {
  MemoryPlan most = memory_of(*this, largest, batch);
  for (std::size_t length = 0; length < iterations.size(); ++length) {
    if (length == largest) continue;
    const MemoryPlan plan = memory_of(*this, length, batch);
    if (plan.needed() > most.needed()) most = plan;
  }
  return most;
}

Bytes Prediction::library_state_beside(std::size_t length) const {
  Bytes sum;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    if (i != length) sum += Bytes((*steps)[i].memory.library_state.at(static_cast<double>(batches[i])));
  }
  return sum;
}

std::optional<Seconds> Prediction::epoch_time() const {
  const double samples = samples_of_epoch(*this);
  if (samples == 0) return std::nullopt;
  const double in_iteration = batch() * static_cast<double>(batches_read() * ranks());
  return iteration_time() * (samples / in_iteration);
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

}  // namespace tbdsim
