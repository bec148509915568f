#include "costmodel/estimate.h"

#include <algorithm>
#include <cmath>

namespace tbdsim {
namespace {

constexpr double kTelling = 0.85;  // of the spread without neighbours: nearer ones tell something

Bound bound_of(double compute, double memory, double overhead) {
  if (overhead > std::max(compute, memory)) return Bound::overhead;
  return compute > memory ? Bound::compute : Bound::memory;
}

KernelCost by_roofline(const Kernel& kernel, double batch, const Calibration& calibration) {
  const GpuSpec& gpu = *calibration.gpu;
  const Efficiency<double>& efficiency = calibration.profile->kinds[index_of(kernel.kind)];
  const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
  // Transfers pass the bus; efficiencies are of the memory's bandwidth or of what the bus achieves.
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

Provenance provenance_of(const ResidualEstimate& found, const Calibration::Entry& entry) {
  if (!entry.exact) return Provenance::modelled;
  if (found.distance < kSamePlace) return entry.own ? Provenance::measured : Provenance::transferred;
  if (found.sd < kTelling * entry.residuals->sd_alone()) {
    return entry.own ? Provenance::interpolated : Provenance::transferred;
  }
  return Provenance::modelled;
}

// Which measured calls a call is near: none of no group.
struct Nearby {
  const ResidualLookup::Group* group = nullptr;
  Features at;
};

// All functions below write a cost where it will stay: copies of what was just written wait for it.
void set_cost(const Choice& choice, const TimeParts<double>& parts, double workspace, KernelCost& cost) {
  cost.compute = Seconds(parts.compute);
  cost.memory = Seconds(parts.memory);
  cost.overhead = Seconds(parts.overhead);
  cost.total = Seconds(parts.total);
  cost.bound = bound_of(parts.compute, parts.memory, parts.overhead);
  cost.algorithm = choice.algorithm;
  cost.workspace = Bytes(workspace);
}

template <class Family>
Estimate<Family> fastest(const typename Family::Call& call, const Calibration::Entry& entry) {
  const std::span<const double> p = entry.block->parameters;
  if constexpr (HasGrids<Family>) {
    return kernel_time<Family>(call, entry.hardware, entry.sustained, p, *entry.grids);
  } else {
    return kernel_time<Family>(call, entry.hardware, entry.sustained, p);
  }
}

// `nearby` is found unless it is none.
template <class Family>
void by_family(const typename Family::Call& call, const Calibration::Entry& entry, Nearby* nearby,
               KernelCost& cost) {
  if (nearby != nullptr) {
    nearby->group = entry.residuals->find(Family::group(call));
    if (nearby->group != nullptr) nearby->at = Family::features(call);
  }
  const auto best = fastest<Family>(call, entry);
  set_cost(best.choice, best.parts, Family::workspace_bytes(call, best.choice), cost);
}

// Whether fp32 is the quicker arithmetic for what may be computed in TF32 once `copies` for tensor cores are
// made. A third of the multiplications is the least that Winograd's and Fourier's algorithms leave in
// practice.
bool fp32_is_quicker(const ConvCall& call, const Calibration& calibration, Seconds copies) {
  constexpr double kLeastLeft = 1.0 / 3;
  const auto& entries = calibration.entries[index_of_family<ConvFamily>()];
  const Calibration::Entry& fp32 = entries[index_of(MathType::fp32)];
  const Calibration::Entry& tf32 = entries[index_of(MathType::tf32)];
  if (fp32.block == nullptr || tf32.block == nullptr) return false;
  if (fp32.hardware.peak < kLeastLeft * tf32.hardware.peak) return false;
  const auto time = [&](const Calibration::Entry& entry) {
    return fastest<ConvFamily>(call, entry).parts.total;
  };
  return time(fp32) < time(tf32) + copies.si();
}

template <class OfFamily>
const Calibration::Entry* by_families(const OfFamily& call, MathType math, const Calibration& calibration,
                                      Nearby* nearby, KernelCost& cost) {
#define TBDSIM_TRY(Family)                                                                              \
  if constexpr (std::is_same_v<OfFamily, Family::Call>) {                                               \
    if (belongs_to<Family>(call)) {                                                                     \
      const Calibration::Entry& entry = calibration.entries[index_of_family<Family>()][index_of(math)]; \
      if (entry.block == nullptr) return nullptr;                                                       \
      by_family<Family>(call, entry, nearby, cost);                                                     \
      return &entry;                                                                                    \
    }                                                                                                   \
  }
  TBDSIM_FOR_EACH_FAMILY(TBDSIM_TRY)
#undef TBDSIM_TRY
  return nullptr;
}

// By formulas alone: returns whose; without an entry by roofline, and complete. Transfers are of no family.
// `copies` take so long before a convolution in TF32.
const Calibration::Entry* by_formula(const Kernel& kernel, double batch, const Calibration& calibration,
                                     Seconds copies, Nearby* nearby, KernelCost& cost) {
  (void)rate_of(*calibration.gpu, kernel.math);  // throws where there is none
  const Calibration::Entry* entry = nullptr;
  MathType math = kernel.math;
  if (kernel.kind != KernelKind::transfer) {
    entry = with_call(kernel, batch, [&](auto call) {
      if constexpr (std::is_same_v<decltype(call), ConvCall>) {
        call.limits = calibration.conv_limits;
        if (math == MathType::tf32 && !kernel.tf32_only && fp32_is_quicker(call, calibration, copies))
          math = MathType::fp32;
      }
      return by_families(call, math, calibration, nearby, cost);
    });
  }
  if (entry == nullptr) cost = by_roofline(kernel, batch, calibration);
  cost.math = math;
  return entry;
}

using Options = std::vector<ConvWorkCache::Option>;

// The calibration of a convolution; none where it has none, its arithmetic depends on rates too, or the
// kernel is none.
const Calibration::Entry* conv_entry(const Kernel& kernel, const Calibration& calibration) {
  if (!std::holds_alternative<ConvShape>(kernel.shape) || kernel.math == MathType::tf32) return nullptr;
  const auto& entry = calibration.entries[index_of_family<ConvFamily>()][index_of(kernel.math)];
  return entry.block == nullptr ? nullptr : &entry;
}

Options options_of(const Kernel& kernel, double batch, const Calibration& calibration,
                   const Calibration::Entry& entry) {
  ConvCall call = conv_call(kernel, std::get<ConvShape>(kernel.shape), batch);
  call.limits = calibration.conv_limits;
  const ConvSizes sizes = call;
  Options options;
  ConvFamily::for_each_demand(
      sizes, entry.hardware, entry.block->parameters, *entry.grids,
      [&](const Choice& choice, const ConvFamily::ConvWork<double>& demand) {
        options.push_back({choice, demand, ConvFamily::workspace_bytes(sizes, choice)});
      });
  return options;
}

void fastest_of(const Options& options, const Calibration::Entry& entry, KernelCost& cost) {
  const ConvWorkCache::Option* best = nullptr;
  TimeParts<double> least{};
  const ConvFamily::UnitTimes<double> each(entry.hardware, entry.sustained);
  for (const ConvWorkCache::Option& option : options) {
    const TimeParts<double> parts = option.demand.at(each);
    if (best != nullptr && parts.total >= least.total) continue;
    best = &option;
    least = parts;
  }
  set_cost(best->choice, least, best->workspace, cost);
}

const Calibration::Entry* by_demands(const Kernel& kernel, double batch, const Calibration& calibration,
                                     Seconds copies, Options& options, KernelCost& cost) {
  const Calibration::Entry* entry = conv_entry(kernel, calibration);
  if (entry == nullptr) return by_formula(kernel, batch, calibration, copies, nullptr, cost);
  if (options.empty()) options = options_of(kernel, batch, calibration, *entry);
  fastest_of(options, *entry, cost);
  cost.math = kernel.math;
  return entry;
}

void scale(KernelCost& cost, double factor) {
  for (Seconds* time : {&cost.compute, &cost.memory, &cost.overhead, &cost.total}) *time = *time * factor;
}

// Returns what the times are still to be scaled by.
double estimate_one(const Kernel& kernel, double batch, const Calibration& calibration, Seconds copies,
                    std::size_t number, KernelCost& cost) {
  Nearby nearby;
  const Calibration::Entry* entry = by_formula(kernel, batch, calibration, copies, &nearby, cost);
  if (entry == nullptr) return 1;
  cost.provenance = Provenance::modelled;
  cost.sd = entry->sd_alone;
  if (nearby.group == nullptr) return 1;
  const ResidualEstimate found = entry->residuals->estimate(*nearby.group, nearby.at, number);
  cost.residual = found.mean;
  cost.provenance = provenance_of(found, *entry);
  cost.sd = sd_of(found, *entry);
  return std::exp(found.mean);
}

bool may_need_copies(const Kernel& kernel) { return kernel.math == MathType::tf32; }

// Copies for a convolution in TF32 come right before it.
std::size_t first_copy(const TrainingStep& step, std::size_t k) {
  const auto is_copy = [](const Kernel& kernel) {
    return kernel.tf32_only && kernel.kind == KernelKind::transpose;
  };
  while (k > 0 && is_copy(step.kernels[k - 1])) --k;
  return k;
}

Seconds time_of_copies(const TrainingStep& step, const std::vector<KernelCost>& costs, std::size_t k) {
  Seconds time;
  for (std::size_t copy = first_copy(step, k); copy < k; ++copy) time += costs[copy].total;
  return time;
}

// In fp32 none is made.
void leave_out_copies(const TrainingStep& step, std::size_t k, std::vector<KernelCost>& costs) {
  if (costs[k].math != MathType::fp32) return;
  for (std::size_t copy = first_copy(step, k); copy < k; ++copy) scale(costs[copy], 0);
}

}  // namespace

KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration) {
  KernelCost cost;
  scale(cost, estimate_one(kernel, batch, calibration, Seconds(0), 0, cost));
  return cost;
}

std::vector<FixedCost> fixed_costs(const TrainingStep& step, const Calibration& calibration,
                                   const KernelFactors& factors) {
  std::vector<FixedCost> fixed;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    // Sizes are affine in the batch: where two are alike all are.
    if (kernel.duplicate_of >= 0 || may_need_copies(kernel) || call_of(kernel, 1) != call_of(kernel, 2))
      continue;
    KernelCost& cost = fixed.emplace_back(FixedCost{k, {}}).cost;
    scale(cost, estimate_one(kernel, 1, calibration, Seconds(0), k, cost) * factors[index_of(kernel.kind)]);
  }
  return fixed;
}

std::vector<KernelCost> estimate(const TrainingStep& step, double batch, const Calibration& calibration,
                                 const KernelFactors& factors, std::span<const FixedCost> fixed) {
  std::vector<KernelCost> costs;
  costs.reserve(step.kernels.size());
  auto known = fixed.begin();
  for (const Kernel& kernel : step.kernels) {
    const std::size_t k = costs.size();
    if (kernel.duplicate_of >= 0) {
      costs.push_back(costs[static_cast<std::size_t>(kernel.duplicate_of)]);
    } else if (known != fixed.end() && known->kernel == k) {
      costs.push_back((known++)->cost);
    } else {
      const Seconds copies = may_need_copies(kernel) ? time_of_copies(step, costs, k) : Seconds(0);
      KernelCost& cost = costs.emplace_back();
      const double factor = estimate_one(kernel, batch, calibration, copies, k, cost);
      scale(cost, factor * factors[index_of(kernel.kind)]);
    }
    if (may_need_copies(kernel)) leave_out_copies(step, k, costs);
  }
  return costs;
}

std::vector<KernelCost> estimate_again(const TrainingStep& step, double batch, const Calibration& calibration,
                                       std::vector<KernelCost> costs, ConvWorkCache& demands,
                                       const KernelFactors& factors) {
  if (demands.sm_count != calibration.gpu->sm_count) demands = {calibration.gpu->sm_count, {}};
  demands.of_kernels.resize(step.kernels.size());
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    KernelCost& cost = costs[k];
    if (kernel.duplicate_of >= 0) {
      cost = costs[static_cast<std::size_t>(kernel.duplicate_of)];
    } else {
      const Seconds copies = may_need_copies(kernel) ? time_of_copies(step, costs, k) : Seconds(0);
      const MathType before = cost.math;
      const Calibration::Entry* entry =
          by_demands(kernel, batch, calibration, copies, demands.of_kernels[k], cost);
      double factor = entry == nullptr ? 1 : std::exp(cost.residual);
      if (entry != nullptr && cost.math != before) {
        cost = {};
        factor = estimate_one(kernel, batch, calibration, copies, k, cost);
      }
      scale(cost, factor * factors[index_of(kernel.kind)]);
    }
    if (may_need_copies(kernel)) leave_out_copies(step, k, costs);
  }
  return costs;
}

// Of the variance. Chosen on measured runs of split fit: errors of models that a fit leaves out, a fifth
// above those of its own rows, lie within the 80 % interval in some 80 % of them.
constexpr double kInCommon = 0.18;

double combined_sd(const TrainingStep& step, const std::vector<KernelCost>& costs) {
  std::array<double, kKernelKindCount> deviations{};
  double time = 0, alone = 0;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const double seconds = costs[k].total.si() * static_cast<double>(step.kernels[k].repeat);
    time += seconds;
    const double deviation = seconds * costs[k].sd;
    deviations[index_of(step.kernels[k].kind)] += deviation;
    alone += deviation * deviation;
  }
  double together = 0;
  for (const double deviation : deviations) together += deviation * deviation;
  return time > 0 ? std::sqrt(kInCommon * together + (1 - kInCommon) * alone) / time : 0;
}

}  // namespace tbdsim
