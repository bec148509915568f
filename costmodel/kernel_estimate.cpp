#include "costmodel/kernel_estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <type_traits>

#include "costmodel/cost_by_width.h"
#include "costmodel/families/fast/grid_work_table.h"
#include "costmodel/families/memory_efficient_attention.h"
#include "costmodel/families/physical_limit.h"
#include "costmodel/families/roofline.h"
#include "costmodel/hardware.h"
#include "costmodel/model_of_kernel.h"
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

// Multiplications of a product whose channels and filters are padded to whole 16 bytes of TF32, over those
// without padding.
double padding_of(const ConvShape& conv) {
  const auto padded = [](std::int64_t size) {
    constexpr std::int64_t kNumbers = 4;
    return static_cast<double>((size + kNumbers - 1) / kNumbers * kNumbers) / static_cast<double>(size);
  };
  return conv.groups > 1 ? 1 : padded(conv.channels) * padded(conv.filters);
}

// True for a convolution that may be computed in TF32 after layout conversions into NHWC, or in fp32 without
// them. fp32 is not tried below a third of what is left of the TF32 peak: Winograd and FFT save at most two
// thirds of the multiplications in practice.
bool may_run_in_fp32(const Kernel& kernel, const Calibration& calibration) {
  constexpr double kLeastLeft = 1.0 / 3;
  if (kernel.math != MathType::tf32 || kernel.tf32_only) return false;
  const auto* conv = std::get_if<ConvShape>(&kernel.shape);
  if (conv == nullptr) return false;
  const auto& models = calibration.models[index_of_family<ConvFamily>()];
  const FamilyModel& fp32 = models[index_of(MathType::fp32)];
  const FamilyModel& tf32 = models[index_of(MathType::tf32)];
  if (fp32.block == nullptr || tf32.block == nullptr) return false;
  return fp32.hardware.peak * padding_of(*conv) >= kLeastLeft * tf32.hardware.peak;
}

// Returns the physical limit in seconds.
template <class Family>
double estimate_by_family(const typename Family::Call& call, const FamilyModel& model, ResidualPoint* point,
                          KernelCost& cost) {
  if (point != nullptr) {
    point->group = model.residuals->find(Family::group(call));
    if (point->group != nullptr) point->at = Family::features(call);
  }
  const auto best = fastest<Family>(call, model);
  set_cost(best.choice, best.parts, Family::workspace_bytes(call, best.choice), cost);
  const double executed = Family::executed(call, best.choice);
  return physical_limit(executed, Family::operand_bytes(call), model.hardware);
}

template <class Family>
const FamilyModel& timed_by(const typename Family::Call& call, const FamilyModel& nearest) {
  if constexpr (std::is_same_v<Family, ConvFamily>) return model_that_timed(call, nearest);
  return nearest;
}

// Writes the cost by the family of the call; returns its model, or null where the profile has none.
template <class Call>
FormulaModel estimate_call(const Call& call, MathType math, const Calibration& calibration,
                           ResidualPoint* point, KernelCost& cost) {
  FormulaModel used;
  for_each_family([&]<class Family>(FamilyTag<Family>) {
    if constexpr (std::is_same_v<Call, typename Family::Call>) {
      if (!gives_time<Family>(call, math, calibration)) return false;
      const FamilyModel& nearest = calibration.models[index_of_family<Family>()][index_of(math)];
      if (nearest.block == nullptr) return true;
      const FamilyModel& model = timed_by<Family>(call, nearest);
      used = {&model, estimate_by_family<Family>(call, model, point, cost)};
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

namespace {

// Writes the cost of an attention that the profile has no block for, by its formula.
FormulaModel estimate_unfitted_attention(const AttentionCall& call, MathType math,
                                         const Calibration& calibration, KernelCost& cost) {
  constexpr double kSpread = 0.3;  // of ln(time); estimate
  Hardware hardware = hardware_of(*calibration.gpu, math);
  hardware.power = limit_of_unmeasured(*calibration.gpu, math);
  const double clock = expected_clock(*calibration.gpu, math).mean;
  set_cost(Choice{.algorithm = Algorithm::attention}, unfitted_attention_time(call, hardware, clock), 0,
           cost);
  cost.provenance = Provenance::modelled;
  cost.residual = 0;
  cost.sd = kSpread;
  cost.math = math;
  return {nullptr, physical_limit(attention_flops(call), call.bytes, hardware)};
}

}  // namespace

FormulaModel estimate_by_formula(const Kernel& kernel, MathType math, double batch,
                                 const Calibration& calibration, ResidualPoint* point, KernelCost& cost) {
  (void)rate_of(*calibration.gpu, math);  // throws where there is none
  const auto* attention = std::get_if<AttentionShape>(&kernel.shape);
  if (attention != nullptr && model_of_kernel(kernel, batch, math, calibration) == nullptr)
    return estimate_unfitted_attention(attention_call(kernel, *attention, batch), math, calibration, cost);
  FormulaModel model;
  if (kernel.kind != KernelKind::transfer) {
    model = with_call(kernel, batch, [&](auto call) {
      if constexpr (std::is_same_v<decltype(call), ConvCall>)
        call.limits = calibration.conv_limits[index_of(math)];
      if constexpr (std::is_same_v<decltype(call), AttentionCall>)
        call.kernel = attention_on(*calibration.gpu, call.kernel);
      return estimate_call(call, math, calibration, point, cost);
    });
  }
  if (model.family == nullptr) cost = by_roofline(kernel, batch, calibration);
  cost.math = math;
  return model;
}

void scale_within(KernelCost& cost, double factor, double limit) {
  const double total = cost.total.si();
  scale(cost, factor * total < limit ? limit / total : factor);
}

namespace {

void estimate_in(MathType math, const Kernel& kernel, double batch, const Calibration& calibration,
                 double factor, KernelCost& cost, std::size_t number, EstimateCache* cache) {
  ResidualPoint point;
  const FormulaModel model = estimate_by_formula(kernel, math, batch, calibration, &point, cost);
  if (model.family != nullptr) {
    cost.provenance = Provenance::modelled;
    cost.sd = model.family->sd_without_rows;
  }
  if (point.group != nullptr) {
    const ResidualIndex& residuals = *model.family->residuals;
    const ResidualEstimate found = cache != nullptr
                                       ? cache->estimate(residuals, *point.group, point.at, number)
                                       : residuals.estimate(*point.group, point.at);
    cost.residual = found.mean;
    cost.provenance = provenance_of(found, *model.family);
    cost.sd = sd_of(found, *model.family);
    factor *= std::exp(found.mean);
  }
  if (kernel.unknown) {
    cost.provenance = Provenance::roofline;
    cost.sd = std::max(cost.sd, calibration.profile->spread);
  }
  scale_within(cost, factor, model.limit);
}

// The size of a recurrent layer or GEMM that grows with the batch, and the widths that its cost is of.
struct Width {
  const Size* size = nullptr;  // null: another kernel, or none depends on the batch
  std::span<const double> widths{};

  [[nodiscard]] double batch_at(double width) const {
    return (width - static_cast<double>(size->fixed)) / static_cast<double>(size->per_sample);
  }
};

Width width_of(const Kernel& kernel) {
  if (const auto* recurrent = std::get_if<RecurrentShape>(&kernel.shape))
    return recurrent->batch.per_sample > 0 ? Width{&recurrent->batch, kSequences} : Width{};
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
    for (const Size* size : {&gemm->n, &gemm->m, &gemm->k, &gemm->batch}) {
      if (size->per_sample > 0) return {size, kGemmWidths};
    }
  }
  return {};
}

// The same attention without its mask: it takes no less time, whatever the residuals of calls nearby say.
std::optional<Kernel> without_mask(const Kernel& kernel) {
  const auto* attention = std::get_if<AttentionShape>(&kernel.shape);
  if (attention == nullptr || !attention->causal || attention->window > 0) return std::nullopt;
  Kernel full = kernel;
  std::get<AttentionShape>(full.shape).causal = false;
  return full;
}

}  // namespace

bool takes_time_of_wider(const Kernel& kernel, double batch) {
  const Width width = width_of(kernel);
  return width.size != nullptr && width.size->at(batch) < width.widths.back();
}

void estimate_kernel(const Kernel& kernel, double batch, const Calibration& calibration, double factor,
                     Seconds copies, KernelCost& cost, std::size_t number, EstimateCache* cache) {
  // Rooflines rise with the batch by themselves.
  if (takes_time_of_wider(kernel, batch) &&
      model_of_kernel(kernel, batch, kernel.math, calibration) != nullptr) {
    const Width width = width_of(kernel);
    cost = cost_by_width(width.size->at(batch), width.widths, [&](double other) {
      KernelCost at_width;
      estimate_in(kernel.math, kernel, width.batch_at(other), calibration, factor, at_width, number, cache);
      return at_width;
    });
    return;
  }
  estimate_in(kernel.math, kernel, batch, calibration, factor, cost, number, cache);
  if (may_run_in_fp32(kernel, calibration)) {
    KernelCost fp32;
    estimate_in(MathType::fp32, kernel, batch, calibration, factor, fp32, number, cache);
    if (fp32.total < cost.total + copies) cost = fp32;
  }
  if (const auto full = without_mask(kernel)) {
    KernelCost unmasked;
    estimate_in(kernel.math, *full, batch, calibration, factor, unmasked, number, cache);
    if (unmasked.total < cost.total) cost = unmasked;
  }
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

void estimate_anew(const TrainingStep& step, std::size_t k, double batch, const Calibration& calibration,
                   const KernelFactors& factors, std::vector<KernelCost>& costs) {
  const auto write = [&](std::size_t at, Seconds copies) {
    const Kernel& kernel = step.kernels[at];
    costs[at] = {};
    estimate_kernel(kernel, batch, calibration, factors[index_of(kernel.kind)], copies, costs[at]);
  };
  if (!may_need_copies(step.kernels[k])) return write(k, Seconds(0));
  for (std::size_t copy = first_copy(step, k); copy < k; ++copy) write(copy, Seconds(0));
  write(k, time_of_copies(step, costs, k));
  leave_out_copies(step, k, costs);
}

}  // namespace tbdsim
