#include "costmodel/hardware.h"

#include <algorithm>
#include <cstdlib>

namespace tbdsim {
namespace {

constexpr double kSustained = 0.92;
constexpr double kKepler = 0.55;
constexpr double kUnthrottledWatts = 150;
constexpr double kGiga = 1'000'000'000;

double flops_per_joule(const GpuSpec& gpu) {
  if (gpu.architecture == "ada" || gpu.architecture == "blackwell") return 126 * kGiga;
  if (gpu.architecture == "volta" || gpu.architecture == "ampere" || gpu.architecture == "hopper")
    return 77 * kGiga;
  return 57 * kGiga;
}

}  // namespace

Hardware hardware_of(const GpuSpec& gpu, MathType math) {
  const MathRate& rate = rate_of(gpu, math);
  Hardware h;
  h.sm_count = gpu.sm_count;
  h.peak = rate.peak.si();
  h.bandwidth = gpu.memory_bandwidth.si();
  h.l2_bytes = gpu.l2_size.si();
  h.clock = rate.clock.si();
  h.watts = gpu.tdp.si();
  h.compute_capability = 10 * std::strtod(gpu.compute_capability.c_str(), nullptr);
  h.hbm = gpu.memory_type.starts_with("HBM");
  h.bus = achievable(gpu.bus).si();
  h.tensor_cores = math != MathType::fp32 && h.compute_capability >= 70;
  return h;
}

Prior expected_clock(const GpuSpec& gpu) {
  if (gpu.architecture == "kepler") return {kKepler, 0.25};
  const double watts = gpu.tdp.si();
  if (watts >= kUnthrottledWatts) return {kSustained, 0.08};
  const double cap = flops_per_joule(gpu) * watts / rate_of(gpu, MathType::fp32).peak.si();
  return {std::min(kSustained, cap), 0.25};
}

}  // namespace tbdsim
