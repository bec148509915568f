#include "costmodel/kernel_estimate.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "costmodel/families/fast/grid_work_table.h"
#include "costmodel/families/roofline.h"
#include "costmodel/profile/profile.h"
#include "costmodel/residuals/fast/estimate_cache.h"

namespace tbdsim {
namespace {

Bound bound_of(double compute, double memory, double overhead) {
  if (overhead > std::max(compute, memory)) return Bound::overhead;
  return compute > memory ? Bound::compute : Bound::memory;
}

// Cost by the roofline: transfers are limited by the bus, all other kernels by the memory.
KernelCost by_roofline(const Kernel& kernel, double batch, const Calibration& calibration) {
  const GpuSpec& gpu = *calibration.gpu;
  const Efficiency<double>& efficiency = calibration.profile->kinds[index_of(kernel.kind)];
  const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
  const BytesPerSecond bandwidth =
      kernel.kind == KernelKind::transfer ? achievable(gpu.bus) : gpu.memory_bandwidth;
  const RooflineTime<double> time = roofline(kernel.flops.at(batch), rate_of(gpu, kernel.math).peak.si(),
                                             bytes, bandwidth.si(), efficiency);
  KernelCost cost{.compute = Seconds(time.compute_s),
                  .memory = Seconds(time.memory_s),
                  .overhead = Seconds(efficiency.overhead_s),
                  .total = Seconds(time.total_s),
                  .workspace = {}};
  cost.math = kernel.math;
  cost.bound = bound_of(time.compute_s, time.memory_s, efficiency.overhead_s);
  cost.sd = calibration.profile->spread;
  return cost;
}

Provenance provenance_of(const ResidualEstimate& found, const FamilyModel& model) {
  constexpr double kInformed = 0.85;  // of the deviation without rows: below it the rows nearby count
  if (!model.precision_matches) return Provenance::modelled;
  if (found.distance < kSamePlace)
    return model.measured_on_this_gpu ? Provenance::measured : Provenance::transferred;
  if (found.sd < kInformed * model.residuals->sd_without_rows())
    return model.measured_on_this_gpu ? Provenance::interpolated : Provenance::transferred;
  return Provenance::modelled;
}

template <class Family>
Estimate<Family> fastest(const typename Family::Call& call, const FamilyModel& model) {
  const std::span<const double> p = model.block->parameters;
  if constexpr (HasGrids<Family>) {
    return kernel_time<Family>(call, model.hardware, model.sustained, p, *model.grid_work);
  } else {
    return kernel_time<Family>(call, model.hardware, model.sustained, p);
  }
}

// True if fp32 is faster for a convolution that may be computed in TF32 after `copies` seconds of conversion
// into NHWC. fp32 is not tried below a third of the TF32 peak: Winograd and FFT save at most two thirds of
// the multiplications in practice.
bool fp32_is_faster(const ConvCall& call, const Calibration& calibration, Seconds copies) {
  constexpr double kLeastLeft = 1.0 / 3;
  const auto& models = calibration.models[index_of_family<ConvFamily>()];
  const FamilyModel& fp32 = models[index_of(MathType::fp32)];
  const FamilyModel& tf32 = models[index_of(MathType::tf32)];
  if (fp32.block == nullptr || tf32.block == nullptr) return false;
  if (fp32.hardware.peak < kLeastLeft * tf32.hardware.peak) return false;
  const auto time = [&](const FamilyModel& model) { return fastest<ConvFamily>(call, model).parts.total; };
  return time(fp32) < time(tf32) + copies.si();
}

template <class Family>
void estimate_by_family(const typename Family::Call& call, const FamilyModel& model, ResidualPoint* point,
                        KernelCost& cost) {
  if (point != nullptr) {
    point->group = model.residuals->find(Family::group(call));
    if (point->group != nullptr) point->at = Family::features(call);
  }
  const auto best = fastest<Family>(call, model);
  set_cost(best.choice, best.parts, Family::workspace_bytes(call, best.choice), cost);
}

// Writes the cost by the family of the call; returns its model, or null where the profile has none.
template <class Call>
const FamilyModel* estimate_call(const Call& call, MathType math, const Calibration& calibration,
                                 ResidualPoint* point, KernelCost& cost) {
  const FamilyModel* used = nullptr;
  for_each_family([&]<class Family>(FamilyTag<Family>) {
    if constexpr (std::is_same_v<Call, typename Family::Call>) {
      if (!belongs_to<Family>(call)) return false;
      const FamilyModel& model = calibration.models[index_of_family<Family>()][index_of(math)];
      if (model.block == nullptr) return true;
      estimate_by_family<Family>(call, model, point, cost);
      used = &model;
      return true;
    }
    return false;
  });
  return used;
}

// Index of the first of the layout conversions right before kernel k; k: there is none.
std::size_t first_copy(const TrainingStep& step, std::size_t k) {
  const auto is_copy = [](const Kernel& kernel) {
    return kernel.tf32_only && kernel.kind == KernelKind::transpose;
  };
  while (k > 0 && is_copy(step.kernels[k - 1])) --k;
  return k;
}

}  // namespace

void set_cost(const Choice& choice, const TimeParts<double>& parts, double workspace, KernelCost& cost) {
  cost.compute = Seconds(parts.compute);
  cost.memory = Seconds(parts.memory);
  cost.overhead = Seconds(parts.overhead);
  cost.total = Seconds(parts.total);
  cost.bound = bound_of(parts.compute, parts.memory, parts.overhead);
  cost.algorithm = choice.algorithm;
  cost.workspace = Bytes(workspace);
}

const FamilyModel* estimate_by_formula(const Kernel& kernel, double batch, const Calibration& calibration,
                                       Seconds copies, ResidualPoint* point, KernelCost& cost) {
  (void)rate_of(*calibration.gpu, kernel.math);  // throws where there is none
  const FamilyModel* model = nullptr;
  MathType math = kernel.math;
  if (kernel.kind != KernelKind::transfer) {
    model = with_call(kernel, batch, [&](auto call) {
      if constexpr (std::is_same_v<decltype(call), ConvCall>) {
        call.limits = calibration.conv_limits;
        if (math == MathType::tf32 && !kernel.tf32_only && fp32_is_faster(call, calibration, copies))
          math = MathType::fp32;
      }
      return estimate_call(call, math, calibration, point, cost);
    });
  }
  if (model == nullptr) cost = by_roofline(kernel, batch, calibration);
  cost.math = math;
  return model;
}

double estimate_kernel(const Kernel& kernel, double batch, const Calibration& calibration, Seconds copies,
                       KernelCost& cost, std::size_t number, EstimateCache* cache) {
  ResidualPoint point;
  const FamilyModel* model = estimate_by_formula(kernel, batch, calibration, copies, &point, cost);
  if (model == nullptr) return 1;
  cost.provenance = Provenance::modelled;
  cost.sd = model->sd_without_rows;
  if (point.group == nullptr) return 1;
  const ResidualEstimate found = cache != nullptr
                                     ? cache->estimate(*model->residuals, *point.group, point.at, number)
                                     : model->residuals->estimate(*point.group, point.at);
  cost.residual = found.mean;
  cost.provenance = provenance_of(found, *model);
  cost.sd = sd_of(found, *model);
  return std::exp(found.mean);
}

Seconds time_of_copies(const TrainingStep& step, const std::vector<KernelCost>& costs, std::size_t k) {
  Seconds time;
  for (std::size_t copy = first_copy(step, k); copy < k; ++copy) time += costs[copy].total;
  return time;
}

void leave_out_copies(const TrainingStep& step, std::size_t k, std::vector<KernelCost>& costs) {
  if (costs[k].math != MathType::fp32) return;
  for (std::size_t copy = first_copy(step, k); copy < k; ++copy) scale(costs[copy], 0);
}

}  // namespace tbdsim
