#include "simulate/plan/continuous_load.h"

#include <limits>

namespace tbdsim {
namespace {

struct OperationsForAJoule {
  double least_capability;
  double sixteen_bits;
  double eight_bits;  // Ampere has none: as 16 bits
};
constexpr double kTera = 1'000 * kGiga;
constexpr OperationsForAJoule kGenerations[] = {
    {10, 1 * kTera, 2.1 * kTera}, {9, 0.88 * kTera, 1.5 * kTera}, {8, 0.55 * kTera, 0.55 * kTera}};

}  // namespace

FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math) {
  for (const auto& generation : kGenerations) {
    if (gpu.compute_capability < generation.least_capability) continue;
    const double narrow = math == MathType::fp8 ? generation.eight_bits : generation.sixteen_bits;
    const double wide = math == MathType::tf32 || math == MathType::fp32 ? 0.5 : 1;
    return FlopsPerSecond(gpu.tdp.si() * narrow * wide);
  }
  return FlopsPerSecond(std::numeric_limits<double>::infinity());
}

}  // namespace tbdsim
