#include "costmodel/fast/rate_cache.h"

#include <cmath>
#include <variant>

#include "costmodel/families/fast/grid_work_table.h"
#include "costmodel/kernel_estimate.h"
#include "costmodel/profile/profile_block.h"

namespace tbdsim {
namespace {

using Options = std::vector<ConvWorkCache::Option>;

// The model of a convolution; null: the kernel is none, the profile has none, or the arithmetic may change
// with the rates (TF32).
const FamilyModel* conv_model(const Kernel& kernel, const Calibration& calibration) {
  if (!std::holds_alternative<ConvShape>(kernel.shape) || kernel.math == MathType::tf32) return nullptr;
  const FamilyModel& model = calibration.models[index_of_family<ConvFamily>()][index_of(kernel.math)];
  return model.block == nullptr ? nullptr : &model;
}

Options options_of(const Kernel& kernel, double batch, const Calibration& calibration,
                   const FamilyModel& model) {
  ConvCall call = conv_call(kernel, std::get<ConvShape>(kernel.shape), batch);
  call.limits = calibration.conv_limits;
  const ConvSizes sizes = call;
  Options options;
  ConvFamily::for_each_work(sizes, model.hardware, model.block->parameters, *model.grid_work,
                            [&](const Choice& choice, const ConvWork<double>& work) {
                              options.push_back({choice, work, ConvFamily::workspace_bytes(sizes, choice)});
                            });
  return options;
}

void set_fastest(const Options& options, const FamilyModel& model, KernelCost& cost) {
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
}

// The same as estimate_by_formula, without a point.
const FamilyModel* estimate_from_options(const Kernel& kernel, double batch, const Calibration& calibration,
                                         Seconds copies, Options& options, KernelCost& cost) {
  const FamilyModel* model = conv_model(kernel, calibration);
  if (model == nullptr) return estimate_by_formula(kernel, batch, calibration, copies, nullptr, cost);
  if (options.empty()) options = options_of(kernel, batch, calibration, *model);
  set_fastest(options, *model, cost);
  cost.math = kernel.math;
  return model;
}

}  // namespace

std::vector<KernelCost> estimate_again(const TrainingStep& step, double batch, const Calibration& calibration,
                                       std::vector<KernelCost> costs, ConvWorkCache& work,
                                       const KernelFactors& factors) {
  if (work.sm_count != calibration.gpu->sm_count) work = {calibration.gpu->sm_count, {}};
  work.of_kernels.resize(step.kernels.size());
  estimate_kernels(step, costs, [&](std::size_t k, Seconds copies, KernelCost& cost) {
    const Kernel& kernel = step.kernels[k];
    const MathType before = cost.math;
    const FamilyModel* model =
        estimate_from_options(kernel, batch, calibration, copies, work.of_kernels[k], cost);
    double factor = model == nullptr ? 1 : std::exp(cost.residual);
    if (model != nullptr && cost.math != before) {  // another family model, another residual
      cost = {};
      factor = estimate_kernel(kernel, batch, calibration, copies, cost);
    }
    return factor * factors[index_of(kernel.kind)];
  });
  return costs;
}

}  // namespace tbdsim
