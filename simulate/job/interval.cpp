#include "simulate/job/interval.h"

#include <utility>
#include <vector>

#include "costmodel/estimate.h"
#include "costmodel/model_of_kernel.h"

namespace tbdsim {
namespace {

constexpr std::size_t index_of(Effect effect) { return static_cast<std::size_t>(effect); }

// The kernels of one micro-batch through the whole network, as a step.
struct WholeNetwork {
  TrainingStep step;
  std::vector<KernelRuns> runs;
  std::vector<KernelCost> costs;

  void add(RankWork work, double times, const Calibration& calibration) {
    if (times <= 0) return;
    for (std::vector<Kernel>* kernels : {&work.forward, &work.backward}) {
      for (Kernel& kernel : *kernels) {
        runs.push_back({step.kernels.size(), static_cast<std::int64_t>(times), times});
        costs.push_back(estimate(kernel, 1, calibration));
        step.kernels.push_back(std::move(kernel));
      }
    }
  }
};

WholeNetwork network_of(const ParallelLayout& layout, const PlanInputs& in) {
  const Share share = share_of(layout);
  const auto layers = static_cast<double>(in.shape.layers);
  const double dense = in.shape.mixture() ? static_cast<double>(in.shape.dense_layers) : layers;
  WholeNetwork all;
  const auto block = [&](bool experts) {
    return block_work(in.shape, share, in.job, experts, in.stack, in.precision);
  };
  if (dense > 0) all.add(block(false), dense, *in.calibration);
  if (in.shape.mixture()) all.add(block(true), layers - dense, *in.calibration);
  all.add(embedding_work(in.shape, share, in.job, in.stack), 1, *in.calibration);
  all.add(head_work(in.shape, share, in.job, in.stack, in.precision), 1, *in.calibration);
  return all;
}

// Share of the kernels' time that was not measured on the GPU itself.
double unmeasured_share(const WholeNetwork& all, const Calibration& calibration) {
  double time = 0, others = 0;
  for (std::size_t k = 0; k < all.costs.size(); ++k) {
    const double own = all.costs[k].total.si() * static_cast<double>(all.runs[k].times);
    const FamilyModel* model = model_of_kernel(all.step.kernels[k], 1, all.costs[k].math, calibration);
    time += own;
    if (model == nullptr || !model->measured_on_this_gpu) others += own;
  }
  return time > 0 ? others / time : 0;
}

}  // namespace

Effects deviations_of(const LayoutPrediction& p, const ResolvedJob& job) {
  if (job.captured()) {
    Effects deviations = job.of_one_gpu;
    const std::size_t exchange = index_of(Effect::exchange);
    deviations[exchange] = kComponents[exchange] * (p.exposed() / p.step);
    return deviations;
  }
  const WholeNetwork all = network_of(p.layout, job.inputs);
  const double kernels = (p.parts.compute + p.parts.again) / p.step;
  Effects exposure{};  // deviations once they are multiplied by their components
  exposure[index_of(Effect::kernels)] = combined_sd(all.step, all.runs, all.costs) * kernels;
  exposure[index_of(Effect::gpu)] = unmeasured_share(all, *job.calibration) * kernels;
  for (const Effect always : {Effect::set, Effect::rest}) exposure[index_of(always)] = 1;
  exposure[index_of(Effect::exchange)] = p.exposed() / p.step;
  for (std::size_t e = 0; e < exposure.size(); ++e) exposure[e] *= kComponents[e];
  return exposure;
}

}  // namespace tbdsim
