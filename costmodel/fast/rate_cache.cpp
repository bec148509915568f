#include "costmodel/fast/rate_cache.h"

#include <cmath>
#include <variant>

#include "costmodel/families/fast/grid_work_table.h"
#include "costmodel/families/physical_limit.h"
#include "costmodel/kernel_estimate.h"
#include "costmodel/profile/profile_block.h"

namespace tbdsim {
namespace {

using Options = ConvWorkCache::Options;

Options options_of(const Kernel& kernel, const ConvShape& shape, double batch, const Calibration& calibration,
                   const FamilyModel& nearest) {
  ConvCall call = conv_call(kernel, shape, batch);
  call.limits = calibration.conv_limits[index_of(kernel.math)];
  const FamilyModel& model = model_that_timed(call, nearest);
  Options options;
  for (const FamilyModel* other = &nearest; other != &model; other = other->next.get()) ++options.model;
  const ConvSizes sizes = call;
  ConvFamily::for_each_work(sizes, model.hardware, model.block->parameters, *model.grid_work,
                            [&](const Choice& choice, const ConvWork<double>& work) {
                              options.all.push_back({choice, work, ConvFamily::workspace_bytes(sizes, choice),
                                                     ConvFamily::executed(sizes, choice), sizes.tensors});
                            });
  return options;
}

std::vector<PowerLimit> power_limits(const Calibration& calibration) {
  std::vector<PowerLimit> limits;
  for (const FamilyModel& nearest : calibration.models[index_of_family<ConvFamily>()]) {
    for (const FamilyModel* model = &nearest; model != nullptr; model = model->next.get())
      limits.push_back(model->hardware.power);
  }
  return limits;
}

// Returns the physical limit in seconds.
double set_fastest(const std::vector<ConvWorkCache::Option>& options, const FamilyModel& model,
                   KernelCost& cost) {
  const ConvWorkCache::Option* best = nullptr;
  TimeParts<double> least{};
  const ConvUnitTimes<double> each(model.hardware, model.sustained);
  for (const ConvWorkCache::Option& option : options) {
    const TimeParts<double> parts = option.work.time(each);
    if (best != nullptr && parts.total >= least.total) continue;
    best = &option;
    least = parts;
  }
  set_cost(best->choice, least, best->workspace, cost);
  return physical_limit(best->executed, best->operand_bytes, model.hardware);
}

// The same as estimate_by_formula, without a point.
FormulaModel estimate_from_options(const Kernel& kernel, double batch, const Calibration& calibration,
                                   Options& options, KernelCost& cost) {
  const auto* shape = std::get_if<ConvShape>(&kernel.shape);
  const FamilyModel& nearest = calibration.models[index_of_family<ConvFamily>()][index_of(kernel.math)];
  if (shape == nullptr || nearest.block == nullptr)
    return estimate_by_formula(kernel, kernel.math, batch, calibration, nullptr, cost);
  if (options.all.empty()) options = options_of(kernel, *shape, batch, calibration, nearest);
  const FamilyModel* model = &nearest;
  for (int other = 0; other < options.model; ++other) model = model->next.get();
  cost.math = kernel.math;
  return {model, set_fastest(options.all, *model, cost)};
}

}  // namespace

std::vector<KernelCost> estimate_again(const TrainingStep& step, double batch, const Calibration& calibration,
                                       std::vector<KernelCost> costs, ConvWorkCache& work,
                                       const KernelFactors& factors, EstimateCache* cache) {
  const int sm_count = calibration.gpu->sm_count;
  const auto power = power_limits(calibration);
  if (work.sm_count != sm_count || work.power != power)
    work = {.sm_count = sm_count, .power = power, .of_kernels = {}};
  work.of_kernels.resize(step.kernels.size());
  estimate_kernels(step, costs, [&](std::size_t k, Seconds copies, KernelCost& cost) {
    const Kernel& kernel = step.kernels[k];
    const double factor = factors[index_of(kernel.kind)];
    // The arithmetic or the tile may change with the rates, and the residual with it.
    if (may_need_copies(kernel) || takes_time_of_wider(kernel, batch)) {
      cost = {};
      estimate_kernel(kernel, batch, calibration, factor, copies, cost, k, cache);
      return;
    }
    const FormulaModel model = estimate_from_options(kernel, batch, calibration, work.of_kernels[k], cost);
    const double residual = model.family == nullptr ? 0 : cost.residual;
    scale_within(cost, factor * std::exp(residual), model.limit);
  });
  return costs;
}

}  // namespace tbdsim
