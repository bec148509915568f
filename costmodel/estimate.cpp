#include "costmodel/estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tbdsim {
namespace {

constexpr double kSame = 1e-6;     // features of one call, written and read again
constexpr double kTelling = 0.85;  // of the spread without neighbours: nearer ones tell something
// More deviation where no call of the sort was measured (batch norm, pooling, updates, a pass): estimate,
// published spot checks of such kernels are off by 2 to 44 %, a few by more.
constexpr double kNoSuchCall = 0.3;
constexpr double kOtherPrecision = 0.2;  // more deviation where the block is of another precision

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
  if (found.distance < kSame) return entry.own ? Provenance::measured : Provenance::transferred;
  if (found.sd < kTelling * entry.residuals->sd_alone()) {
    return entry.own ? Provenance::interpolated : Provenance::transferred;
  }
  return Provenance::modelled;
}

// Of ln(measured / predicted).
double sd_of(const ResidualEstimate& found, const Calibration::Entry& entry) {
  double sd = found.sd * entry.block->interval / kEightyPercent;
  if (!entry.own) sd = std::hypot(sd, entry.clock_sd);
  if (!entry.block->measured.empty() && !std::isfinite(found.distance)) sd = std::hypot(sd, kNoSuchCall);
  return entry.exact ? sd : std::hypot(sd, kOtherPrecision);
}

// `known`: its cost under other rates, or none.
template <class Family>
KernelCost by_family(const typename Family::Call& call, const Calibration::Entry& entry,
                     const KernelCost* known) {
  const auto best = kernel_time<Family>(call, entry.hardware, entry.sustained, entry.block->parameters);
  KernelCost cost{};
  cost.workspace = Bytes(Family::workspace_bytes(call, best.choice));
  if (known != nullptr) {
    cost.residual = known->residual;
    cost.provenance = known->provenance;
    cost.sd = known->sd;
  } else {
    const ResidualEstimate found = entry.residuals->estimate(Family::features(call));
    cost.residual = found.mean;
    cost.provenance = provenance_of(found, entry);
    cost.sd = sd_of(found, entry);
  }
  const TimeParts<double>& parts = best.parts;
  const double factor = std::exp(cost.residual);
  cost.compute = Seconds(parts.compute * factor);
  cost.memory = Seconds(parts.memory * factor);
  cost.overhead = Seconds(parts.overhead * factor);
  cost.total = Seconds(parts.total * factor);
  cost.bound = bound_of(parts.compute, parts.memory, parts.overhead);
  cost.algorithm = best.choice.algorithm;
  return cost;
}

// The call in the terms of a family, or none: transfers.
std::optional<Call> fitted_call(const Kernel& kernel, double batch, const Calibration& calibration) {
  if (kernel.kind == KernelKind::transfer) return std::nullopt;
  Call call = call_of(kernel, batch);
  if (auto* conv = std::get_if<ConvCall>(&call)) conv->limits = calibration.conv_limits;
  return call;
}

// Whether fp32 is the quicker arithmetic for what may be computed in TF32. A third of the multiplications is
// the least that Winograd's and Fourier's algorithms leave in practice.
bool fp32_is_quicker(const Call& call, const Calibration& calibration) {
  constexpr double kLeastLeft = 1.0 / 3;
  const auto* conv = std::get_if<ConvCall>(&call);
  if (conv == nullptr) return false;
  const auto& entries = calibration.entries[index_of_family<ConvFamily>()];
  const Calibration::Entry& fp32 = entries[index_of(MathType::fp32)];
  const Calibration::Entry& tf32 = entries[index_of(MathType::tf32)];
  if (fp32.block == nullptr || tf32.block == nullptr) return false;
  if (fp32.hardware.peak < kLeastLeft * tf32.hardware.peak) return false;
  const auto time = [&](const Calibration::Entry& entry) {
    return kernel_time<ConvFamily>(*conv, entry.hardware, entry.sustained, entry.block->parameters)
        .parts.total;
  };
  return time(fp32) < time(tf32);
}

// None where the profile has no block for it.
std::optional<KernelCost> by_families(const Call& call, MathType math, const Calibration& calibration,
                                      const KernelCost* known) {
#define TBDSIM_TRY(Family)                                                                            \
  if (belongs_to<Family>(call)) {                                                                     \
    const Calibration::Entry& entry = calibration.entries[index_of_family<Family>()][index_of(math)]; \
    if (entry.block != nullptr)                                                                       \
      return by_family<Family>(std::get<typename Family::Call>(call), entry, known);                  \
  }
  TBDSIM_FOR_EACH_FAMILY(TBDSIM_TRY)
#undef TBDSIM_TRY
  return std::nullopt;
}

KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration,
                    const KernelCost* known) {
  (void)rate_of(*calibration.gpu, kernel.math);  // throws where there is none
  if (const auto call = fitted_call(kernel, batch, calibration)) {
    const bool fp32 = kernel.math == MathType::tf32 && fp32_is_quicker(*call, calibration);
    const MathType math = fp32 ? MathType::fp32 : kernel.math;
    if (known != nullptr && known->math != math) known = nullptr;
    if (auto cost = by_families(*call, math, calibration, known)) {
      cost->math = math;
      return *cost;
    }
  }
  return by_roofline(kernel, batch, calibration);
}

}  // namespace

KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration) {
  return estimate(kernel, batch, calibration, nullptr);
}

std::vector<KernelCost> estimate_again(const TrainingStep& step, double batch, const Calibration& calibration,
                                       std::span<const KernelCost> known) {
  std::vector<KernelCost> costs;
  costs.reserve(step.kernels.size());
  for (const Kernel& kernel : step.kernels) {
    costs.push_back(kernel.same_as >= 0 ? costs[static_cast<std::size_t>(kernel.same_as)]
                                        : estimate(kernel, batch, calibration,
                                                   known.empty() ? nullptr : &known[costs.size()]));
  }
  return costs;
}

std::vector<KernelCost> estimate(const TrainingStep& step, double batch, const Calibration& calibration) {
  return estimate_again(step, batch, calibration, {});
}

double combined_sd(const TrainingStep& step, const std::vector<KernelCost>& costs) {
  std::array<double, kKernelKindCount> deviations{};
  double time = 0;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const double seconds = costs[k].total.si() * static_cast<double>(step.kernels[k].repeat);
    time += seconds;
    deviations[index_of(step.kernels[k].kind)] += seconds * costs[k].sd;
  }
  double squares = 0;
  for (const double deviation : deviations) squares += deviation * deviation;
  return time > 0 ? std::sqrt(squares) / time : 0;
}

}  // namespace tbdsim
