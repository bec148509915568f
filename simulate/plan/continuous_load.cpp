#include "simulate/plan/continuous_load.h"

#include <limits>

namespace tbdsim {
namespace {

struct OperationsForAJoule {
  double least_capability;
  double operations;
};
constexpr OperationsForAJoule kGenerations[] = {{10, 1.45e12}, {9, 0.88e12}, {8, 0.58e12}};
constexpr double kEightBits = 1.7;

}  // namespace

FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math) {
  for (const auto& generation : kGenerations) {
    if (gpu.compute_capability < generation.least_capability) continue;
    const double narrow = math == MathType::fp8 ? kEightBits : 1;
    const double wide = math == MathType::tf32 || math == MathType::fp32 ? 0.5 : 1;
    return FlopsPerSecond(gpu.tdp.si() * generation.operations * narrow * wide);
  }
  return FlopsPerSecond(std::numeric_limits<double>::infinity());
}

}  // namespace tbdsim
