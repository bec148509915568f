#include "costmodel/hardware.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "costmodel/families/thread_blocks.h"
#include "costmodel/power.h"

namespace tbdsim {
namespace {

constexpr double kSustained = 0.92;
constexpr double kGeForce = 1.0;
constexpr double kKepler = 0.40;
constexpr double kIssued = 0.85;
constexpr double kUnthrottledWatts = 150;
constexpr double kHopper = 9;
constexpr double kWarpInstructions = 0.62;

bool follows_power(const GpuSpec& gpu) {
  return gpu.architecture != "kepler" && gpu.product_line != ProductLine::geforce;
}

// True for SMs of 8.6, 8.9 and 12.x: 128 lanes at clocks that boards of any size are quoted at and none
// feeds.
bool has_graphics_sms(const GpuSpec& gpu) {
  constexpr double kFirst = 8.6, kRtxBlackwell = 12;
  const double capability = gpu.compute_capability;
  return (capability >= kFirst && capability < kHopper) || capability >= kRtxBlackwell;
}

// True for boards whose fp32 lanes draw more than the board has. A `sustained_share` that was measured on a
// board of 150 W or more has the limit in it.
bool lanes_are_limited(const GpuSpec& gpu) {
  const bool small = gpu.tdp.si() < kUnthrottledWatts && (gpu.sustained_share || follows_power(gpu));
  return small || (has_graphics_sms(gpu) && !gpu.sustained_share);
}

// The sustained clock where power does not limit it.
Prior unlimited_clock(const GpuSpec& gpu) {
  if (gpu.sustained_share) return {*gpu.sustained_share, 0.05};
  if (gpu.architecture == "kepler") return {kKepler, 0.25};
  if (gpu.product_line == ProductLine::geforce) return {kGeForce, 0.08};
  return {kSustained, 0.08};
}

// The share of the fp32 peak that it lets products without tensor cores reach.
Prior unlimited_share(const GpuSpec& gpu) {
  const Prior clock = unlimited_clock(gpu);
  return {clock.mean * (gpu.sustained_share ? 1 : issued_share(gpu)), clock.sd};
}

}  // namespace

double rate_share(const GpuSpec& gpu, MathType asked) {
  const MathType math = gpu.computes_in[index_of(asked)].value_or(asked);
  const double capability = gpu.compute_capability;
  if (math == MathType::fp32 || capability < 7) return 1;
  constexpr std::pair<double, double> kMostFlopsPerClock[] = {
      {12, 2'048}, {10, 8'192}, {9, 4'096}, {8, 2'048}, {7, 1'024}};
  const auto full = *std::find_if(std::begin(kMostFlopsPerClock), std::end(kMostFlopsPerClock),
                                  [&](const auto& from) { return capability >= from.first; });
  constexpr double kHalfRate = 0.5;
  const double operand = math == MathType::tf32  ? kHalfRate
                         : math == MathType::fp8 ? 2
                         : math == MathType::fp4 ? 4
                                                 : 1;
  return std::min(1.0, rate_of(gpu, math).flops_per_clock_per_sm / (operand * full.second));
}

double power_share(const GpuSpec& gpu, MathType math) {
  if (!has_tensor_cores(gpu, math)) return 1;
  const double full = power_of(gpu).full_board;
  if (full == 0) return 1;
  return std::min(1.0, clock_of_power(watts_of_each(gpu, math), full));
}

double issued_share(const GpuSpec& gpu) {
  constexpr double kFirst = 8.6;
  return gpu.compute_capability >= kFirst ? kIssued : 1;
}

double power_ratio(const GpuSpec& gpu, double measured_watts) {
  return measured_watts > 0 ? clock_of_power(gpu.tdp.si(), measured_watts) : 1;
}

double instruction_share(const GpuSpec& gpu, double measured) {
  constexpr double kOnlyWarps = 12;
  const bool warp_groups = gpu.compute_capability >= kHopper && gpu.compute_capability < kOnlyWarps;
  return warp_groups && measured < kHopper ? kWarpInstructions : 1;
}

double tile_loss(const GpuSpec& gpu, double measured) {
  constexpr double kAmpere = 8, kBetween = 2.0 / 3;
  return measured > 0 && measured < kAmpere && gpu.compute_capability >= kAmpere ? kBetween : 1;
}

double tf32_across_k(const GpuSpec& gpu) { return gpu.architecture == "hopper" ? kWarpInstructions : 1; }

bool has_tensor_cores(const GpuSpec& gpu, MathType math) {
  constexpr double kVolta = 7;
  return math != MathType::fp32 && gpu.compute_capability >= kVolta;
}

Hardware hardware_of(const GpuSpec& gpu, MathType math) {
  const MathRate& rate = rate_of(gpu, math);
  Hardware h;
  h.sm_count = gpu.sm_count;
  h.peak = rate.peak.si();
  h.bandwidth = gpu.memory_bandwidth.si();
  h.l2_bytes = gpu.l2_size.si();
  h.clock = rate.clock.si();
  h.watts = gpu.tdp.si();
  h.compute_capability = 10 * gpu.compute_capability;
  h.hbm = gpu.memory_type.starts_with("HBM");
  h.ecc = gpu.ecc;
  h.bus = achievable(gpu.bus).si();
  h.tensor_cores = has_tensor_cores(gpu, math);
  h.rate_share = rate_share(gpu, math);
  return h;
}

PowerLimit lane_limit(const GpuSpec& gpu) {
  const double sustained = power_of(gpu).flops_per_joule * gpu.tdp.si();
  const double cap = sustained / rate_of(gpu, MathType::fp32).peak.si();
  return {lanes_are_limited(gpu) ? std::min(1.0, cap / unlimited_share(gpu).mean) : 1};
}

PowerLimit limit_of_unmeasured(const GpuSpec& gpu, MathType math) {
  if (!has_tensor_cores(gpu, math)) return lane_limit(gpu);
  return {power_share(gpu, math), kCubeRoot};
}

Prior expected_clock(const GpuSpec& gpu, MathType math) {
  if (has_tensor_cores(gpu, math)) {
    const Prior unlimited = unlimited_clock(gpu);
    return {unlimited.mean * power_share(gpu, math), unlimited.sd};
  }
  const Prior unlimited = unlimited_share(gpu);
  const bool by_rule = !gpu.sustained_share && lanes_are_limited(gpu);
  return {unlimited.mean * lane_limit(gpu).clock_share, by_rule ? 0.25 : unlimited.sd};
}

}  // namespace tbdsim
