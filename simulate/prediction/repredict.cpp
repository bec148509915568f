#include "simulate/prediction/repredict.h"

#include <algorithm>
#include <utility>

#include "costmodel/fast/rate_cache.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/scratch_memory.h"

namespace tbdsim {
namespace {

// Workspaces of the convolutions of an iteration, in bytes.
std::vector<Bytes> workspaces_of(const Iteration& iteration) {
  std::vector<Bytes> workspaces;
  workspaces.reserve(iteration.memory->convolutions.size());
  for (const MemoryOutline::Alive& convolution : iteration.memory->convolutions)
    workspaces.push_back(iteration.costs[static_cast<std::size_t>(convolution.kernel)].workspace);
  return workspaces;
}

// Sets the memory of iterations beside another cluster's buffers, and what the scratch memory left changes.
void fit_again(Prediction& p) {
  for (std::size_t length = 0; length < p.iterations.size(); ++length) {
    Iteration& iteration = p.iterations[length];
    const auto batch = static_cast<double>(iteration.batch);
    const bool was_limited = iteration.plan.scratch_limited;
    run_alone(p, iteration);
    iteration.plan = fit_scratch(p, length, batch, iteration.costs);
    if (!was_limited && !iteration.plan.scratch_limited) continue;
    iteration.costs = estimate(*iteration.step, batch, *p.calibration, p.factors);
    iteration.plan = fit_scratch(p, length, batch, iteration.costs);
    simulate_alone(p, iteration);
  }
}

}  // namespace

Prediction with_rates(Prediction p, std::shared_ptr<const GpuSpec> gpu, EstimateCache* cache) {
  const Bytes usable = p.usable_memory();
  p.calibration = std::make_shared<const Calibration>(with_rates(*p.calibration, *gpu));
  p.gpu = std::move(gpu);
  p.factors = factors_on(*p.framework, *p.gpu, p.precision->math);
  p.fixed_costs.clear();  // of the rates before
  const bool same_room = p.usable_memory() == usable;
  for (std::size_t length = 0; length < p.iterations.size(); ++length) {
    Iteration& iteration = p.iterations[length];
    const auto batch = static_cast<double>(iteration.batch);
    run_alone(p, iteration);
    const std::vector<Bytes> workspaces = workspaces_of(iteration);
    iteration.costs = estimate_again(*iteration.step, batch, *p.calibration, std::move(iteration.costs),
                                     iteration.demands, p.factors, cache);
    // Other rates may mean other algorithms, and so other workspaces.
    if (!same_room || workspaces_of(iteration) != workspaces)
      iteration.plan = fit_scratch(p, length, batch, iteration.costs);
    simulate_alone(p, iteration);
  }
  predict_sync(p);
  predict_memory(p);
  p.peak = rate_of(*p.gpu, p.precision->convolution_math()).peak;
  return p;
}

Prediction with_cluster(Prediction p, const Cluster& cluster, std::optional<SyncPlan> plan, double cores) {
  p.scenario.cluster = cluster;
  p.cores = cores;
  p.sync = std::move(plan);
  fit_again(p);
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
