// Properties of every kernel of every model and framework, on every GPU, at several batches.
#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "graphs/suite.h"
#include "simulate/workload/precision_choice.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr double kBatches[] = {1, 32, 1000};

// Calls `check` for the steps of the suite's models, each as the first framework that trains it does, and of
// ResNet-50 as all do, in fp32, at the longest length.
void for_every_step(SpecCache& specs, const std::function<void(const TrainingStep&)>& check) {
  const auto run = [&](const std::string& model, const Variant& variant, const std::string& framework) {
    check(specs
              .workload(model, variant, {framework, specs.framework(framework)}, find_precision("fp32"),
                        variant.dataset)
              ->back()
              .step);
  };
  for (const SuiteModel& entry : read_suite(specs.catalog().find(Kind::suite, "tbd")).models) {
    for (const Variant& variant : specs.model(entry.model)->variants) {
      if (!variant.frameworks.empty()) run(entry.model, variant, variant.frameworks.front());
    }
  }
  for (const Variant& variant : specs.model("resnet50")->variants) {
    for (const std::string& framework : specs.catalog().names(Kind::framework))
      run("resnet50", variant, framework);
  }
}

// Calls `check` for every step x GPU x batch.
using Check = std::function<void(const TrainingStep&, const GpuSpec&, double batch)>;
void for_every_case(SpecCache& specs, const Check& check) {
  for_every_step(specs, [&](const TrainingStep& step) {
    for (const std::string& gpu : specs.catalog().names(Kind::gpu)) {
      for (const double batch : kBatches) check(step, *specs.gpu(gpu), batch);
    }
  });
}

double total(const TrainingStep& step, double batch, const GpuSpec& gpu, const Profile& profile) {
  double sum = 0;
  for (const KernelCost& cost : estimate(step, batch, calibration_of(profile, gpu))) sum += cost.total.si();
  return sum;
}

// No kernel beats the share of the peak or of the bandwidth its profile allows; the uncalibrated profile
// allows no more than the data sheet. The total is the start-up and the longer of the two.
TEST(EstimateProperty, NoKernelIsFasterThanEitherRoof) {
  SpecCache specs = test::source_specs();
  const Profile& profile = *specs.profile("uncalibrated");
  for_every_case(specs, [&](const TrainingStep& step, const GpuSpec& gpu, double batch) {
    const auto costs = estimate(step, batch, calibration_of(profile, gpu));
    ASSERT_EQ(costs.size(), step.kernels.size());
    for (std::size_t k = 0; k < costs.size(); ++k) {
      const Kernel& kernel = step.kernels[k];
      const KernelCost& cost = costs[k];
      const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
      ASSERT_GE(cost.total.si() * rate_of(gpu, kernel.math).peak.si(), kernel.flops.at(batch)) << kernel.op;
      ASSERT_GE(cost.total.si() * gpu.memory_bandwidth.si(), bytes) << kernel.op;
      ASSERT_EQ(cost.total, cost.overhead + std::max(cost.compute, cost.memory)) << kernel.op;
      ASSERT_GT(cost.overhead.si(), 0);
    }
  });
}

// The bound names the largest of the three parts.
TEST(EstimateProperty, BoundIsTheLargestPart) {
  SpecCache specs = test::source_specs();
  const Profile& profile = *specs.profile("uncalibrated");
  for_every_case(specs, [&](const TrainingStep& step, const GpuSpec& gpu, double batch) {
    for (const KernelCost& cost : estimate(step, batch, calibration_of(profile, gpu))) {
      const Seconds parts[] = {cost.compute, cost.memory, cost.overhead};  // in the order of Bound
      ASSERT_EQ(parts[static_cast<std::size_t>(cost.bound)],
                *std::max_element(std::begin(parts), std::end(parts)));
    }
  });
}

TEST(EstimateProperty, FasterMemoryAndArithmeticNeverSlowDown) {
  SpecCache specs = test::source_specs();
  const Profile& profile = *specs.profile("uncalibrated");
  for_every_case(specs, [&](const TrainingStep& step, const GpuSpec& gpu, double batch) {
    const double before = total(step, batch, gpu, profile);
    GpuSpec wider = gpu;
    wider.memory_bandwidth = gpu.memory_bandwidth * 2.0;
    const double with_bandwidth = total(step, batch, wider, profile);
    ASSERT_LT(with_bandwidth, before);      // every step has kernels that only move data
    ASSERT_GT(with_bandwidth, before / 2);  // arithmetic and start-up stay
    GpuSpec faster = gpu;
    for (auto& rate : faster.math) {
      if (rate) rate->peak = rate->peak * 2.0;
    }
    ASSERT_LE(total(step, batch, faster, profile), before);
  });
}

// More samples never take less time for any kernel; twice as many never more than twice the time.
TEST(EstimateProperty, TimeGrowsWithTheBatchAtMostInProportion) {
  SpecCache specs = test::source_specs();
  const Profile& profile = *specs.profile("uncalibrated");
  for_every_case(specs, [&](const TrainingStep& step, const GpuSpec& gpu, double batch) {
    const auto once = estimate(step, batch, calibration_of(profile, gpu));
    const auto twice = estimate(step, 2 * batch, calibration_of(profile, gpu));
    constexpr double kRounding = 1 + 1e-12;
    for (std::size_t k = 0; k < once.size(); ++k) {
      ASSERT_GE(twice[k].total, once[k].total) << step.kernels[k].op;
      ASSERT_LE(twice[k].total.si(), 2 * once[k].total.si() * kRounding) << step.kernels[k].op;
    }
  });
}

// Costs worked out once for all batches are those of every batch, to the last bit; updates of parameters are
// among them.
TEST(EstimateProperty, FixedCostsAreThoseOfEveryBatch) {
  SpecCache specs = test::source_specs();
  KernelFactors factors = no_factors();
  factors[index_of(KernelKind::update)] = 1.5;
  bool updates = false;
  for_every_step(specs, [&](const TrainingStep& step) {
    for (const char* gpu : {"titanxp", "t4"}) {
      const Calibration calibration =
          calibration_of(*specs.profile_for({gpu, specs.gpu(gpu)}, ""), *specs.gpu(gpu));
      const std::vector<FixedCost> fixed = fixed_costs(step, calibration, factors);
      for (const double batch : kBatches) {
        const auto costs = estimate(step, batch, calibration, factors);
        const auto known = estimate(step, batch, calibration, factors, fixed);
        for (std::size_t k = 0; k < costs.size(); ++k) {
          ASSERT_EQ(known[k].total, costs[k].total) << step.kernels[k].op;
          ASSERT_EQ(known[k].sd, costs[k].sd) << step.kernels[k].op;
        }
        for (const FixedCost& f : fixed) {
          ASSERT_EQ(f.cost.total, costs[f.kernel].total);
          updates |= step.kernels[f.kernel].kind == KernelKind::update;
        }
      }
    }
  });
  EXPECT_TRUE(updates);
}

}  // namespace
}  // namespace tbdsim
