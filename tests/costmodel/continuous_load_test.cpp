// What the power of a board leaves of its tensor cores in a run without a pause.
#include "costmodel/continuous_load.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "hwspecs/base/catalog.h"

namespace tbdsim {
namespace {

GpuSpec gpu(const std::string& name) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  return read_gpu(catalog.find(Kind::gpu, name), catalog);
}

double share_of_peak(const GpuSpec& gpu, MathType math) {
  return continuous_rate(gpu, math).si() / rate_of(gpu, math).peak.si();
}

// 400 W / (108 SMs * 1.41 GHz) = 2.627 W of the 5.87 that the whole clock draws: 0.15 + 0.85 c^3 = 0.4475.
TEST(ContinuousRate, IsThatOfTheClockThePowerSustains) {
  EXPECT_NEAR(share_of_peak(gpu("a100_sxm_80gb"), MathType::fp16), std::cbrt((0.4475 - 0.15) / 0.85), 1e-3);
}

// The same chip and power: a GeForce card's tensor cores do half the operations a clock, which draw half.
TEST(ContinuousRate, HalfTheOperationsDrawHalfThePower) {
  EXPECT_LT(share_of_peak(gpu("quadro_rtx8000"), MathType::fp16), 0.7);
  EXPECT_GT(share_of_peak(gpu("rtx2080ti"), MathType::fp16), 0.9);
}

TEST(ContinuousRate, NothingLimitsGpusWithoutTensorCoresOrKnownPower) {
  EXPECT_EQ(continuous_rate(gpu("titanxp"), MathType::fp32).si(), std::numeric_limits<double>::infinity());
  GpuSpec unknown = gpu("a100_sxm_80gb");
  unknown.tdp = Watts(0);
  EXPECT_EQ(continuous_rate(unknown, MathType::fp16).si(), std::numeric_limits<double>::infinity());
}

// A T4 has 70 W for 40 SMs: where power is short, more SMs bring nothing, and take nothing.
TEST(ContinuousRate, NeverFallsWithMoreUnits) {
  for (const char* name : {"t4", "h100_pcie", "a100_pcie_40gb", "b200"}) {
    GpuSpec card = gpu(name);
    double before = 0;
    for (int i = 0; i < 40; ++i) {
      const double now = continuous_rate(card, MathType::fp16).si();
      EXPECT_GE(now, before * (1 - 1e-12)) << name << ", " << card.sm_count << " SMs";
      before = now;
      MathRate& rate = card.math[index_of(MathType::fp16)].value();
      rate.peak = rate.peak * ((card.sm_count + 4.0) / card.sm_count);
      card.sm_count += 4;
    }
  }
}

// A product of 1e12 operations at 1e14 a second takes 10 ms: a cost of 5 ms is raised, one of 20 ms is not.
TEST(LimitToContinuousRate, RaisesWhatIsFaster) {
  GpuSpec card = gpu("a100_sxm_80gb");
  TrainingStep step;
  step.kernels.resize(3);
  std::vector<KernelCost> costs(3);
  for (std::size_t k = 0; k < 3; ++k) {
    step.kernels[k].kind = k < 2 ? KernelKind::gemm : KernelKind::elementwise;
    step.kernels[k].flops = {.fixed = 1'000'000'000'000, .per_sample = 0};
    costs[k].math = MathType::fp16;
    costs[k].bound = Bound::memory;
  }
  const Seconds least(1e12 / continuous_rate(card, MathType::fp16).si());
  costs[0].total = least * 0.5;
  costs[1].total = least * 2.0;
  costs[2].total = least * 0.5;
  limit_to_continuous_rate(step, 1, card, costs);
  EXPECT_EQ(costs[0].total, least);
  EXPECT_EQ(costs[0].bound, Bound::compute);
  EXPECT_EQ(costs[1].total, least * 2.0);
  EXPECT_EQ(costs[2].total, least * 0.5);
}

}  // namespace
}  // namespace tbdsim
