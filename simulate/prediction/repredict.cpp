#include "simulate/prediction/repredict.h"

#include <algorithm>
#include <utility>

#include "costmodel/fast/rate_cache.h"
#include "costmodel/step_power.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/scratch_memory.h"
#include "simulate/timeline/activation_offload.h"

namespace tbdsim {
namespace {

// Workspaces of the convolutions of all iterations, in bytes.
std::vector<Bytes> workspaces_of(const Prediction& p) {
  std::vector<Bytes> workspaces;
  for (const Iteration& iteration : p.iterations) {
    for (const MemoryOutline::Alive& convolution : iteration.memory->convolutions)
      workspaces.push_back(iteration.costs[static_cast<std::size_t>(convolution.kernel)].workspace);
  }
  return workspaces;
}

}  // namespace

Prediction with_rates(Prediction p, std::shared_ptr<const GpuSpec> gpu, EstimateCache* cache) {
  const std::vector<Bytes> workspaces = workspaces_of(p);
  const Bytes usable = p.usable_memory();
  p.calibration = std::make_shared<const Calibration>(with_rates(*p.calibration, *gpu));
  p.gpu = std::move(gpu);
  p.factors = factors_on(*p.framework, *p.gpu, p.precision->math);
  p.fixed_costs.clear();  // of the rates before
  for (Iteration& iteration : p.iterations) {
    const auto batch = static_cast<double>(iteration.batch);
    if (!iteration.costs_alone.empty()) iteration.costs = std::exchange(iteration.costs_alone, {});
    iteration.costs = estimate_again(*iteration.step, batch, *p.calibration, std::move(iteration.costs),
                                     iteration.demands, p.factors, cache);
    if (const auto limited = with_scratch_left(p, iteration, iteration.costs, batch))
      iteration.costs = estimate(*iteration.step, batch, *limited, p.factors);
    if (power_limits(*p.precision)) limit_by_power(*iteration.step, batch, *p.calibration, iteration.costs);
    iteration.timeline = simulate_timeline(*iteration.step, iteration.costs, batch, p.framework->launch_model,
                                           std::move(iteration.timeline));
    iteration.copies = offload_stall(iteration.on_host, iteration.timeline, batch, *p.calibration);
  }
  predict_sync(p);
  // Other rates may mean other algorithms, and so other workspaces.
  const bool same_memory = p.usable_memory() == usable && workspaces_of(p) == workspaces;
  predict_memory(p, same_memory ? std::optional(p.memory.fragments) : std::nullopt);
  p.peak = rate_of(*p.gpu, p.precision->convolution_math()).peak;
  return p;
}

Prediction with_cluster(Prediction p, const Cluster& cluster, std::optional<SyncPlan> plan, double cores) {
  p.scenario.cluster = cluster;
  p.cores = cores;
  p.sync = std::move(plan);
  predict_sync(p);
  predict_memory(p);
  return p;
}

void scale(std::vector<KernelCost>& costs, const TrainingStep& step, const KernelFactors& factors) {
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const double factor = factors[index_of(step.kernels[k].kind)];
    KernelCost& cost = costs[k];
    cost.compute = cost.compute * factor;
    cost.memory = cost.memory * factor;
    cost.overhead = cost.overhead * factor;
    cost.total = cost.total * factor;
  }
}

Seconds iteration_time_with(const Framework& framework, const Prediction& p) {
  KernelFactors ratios = factors_on(framework, *p.gpu, p.precision->math);
  for (std::size_t kind = 0; kind < ratios.size(); ++kind) ratios[kind] /= p.factors[kind];
  return mean_over(p.iterations, [&](const Iteration& iteration) {
    std::vector<KernelCost> costs = iteration.costs;
    scale(costs, *iteration.step, ratios);
    const auto batch = static_cast<double>(iteration.batch);
    const Timeline timeline = simulate_timeline(*iteration.step, costs, batch, framework.launch_model);
    return iteration.with_input(timeline.iteration + iteration.copies + iteration.sync.added());
  });
}

}  // namespace tbdsim
