// PyTorch's convolutions take the fastest algorithm whose scratch memory fits beside everything else.
#include "simulate/prediction/scratch_memory.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "simulate/analysis/memory_savings.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

Prediction vgg16(std::int64_t batch, const std::string& framework = "pytorch") {
  static SpecCache specs = test::source_specs();
  return predict({.model = "vgg16", .framework = framework, .gpu = "rtx2080ti", .batch = batch}, specs);
}

Bytes largest_scratch(const Prediction& p) {
  Bytes largest;
  for (const KernelCost& cost : p.iterations.front().costs) largest = std::max(largest, cost.workspace);
  return largest;
}

TEST(ScratchMemory, FastestAlgorithmsWhereAllFits) {
  const Prediction p = vgg16(64);
  EXPECT_FALSE(p.memory.scratch_limited);
  EXPECT_GT(largest_scratch(p), Bytes(1024.0 * 1024 * 1024));  // no limit of a GiB
}

// A batch that fits without scratch memory runs, with algorithms that need no more than what is left.
TEST(ScratchMemory, FullGpuTakesSlowerAlgorithms) {
  const Prediction large = vgg16(64);
  const std::int64_t most = large.largest_batch();
  const Prediction full = vgg16(most);
  EXPECT_TRUE(full.fits);
  EXPECT_TRUE(full.memory.scratch_limited);
  EXPECT_FALSE(vgg16(most + 1).fits);
  EXPECT_LE(full.memory.needed(), full.usable_memory());
  EXPECT_EQ(full.memory.total(), large.memory_at(most).total());
  EXPECT_LT(full.throughput(), large.throughput());
}

// Batches that do not fit have times of a larger GPU, and rise among themselves.
TEST(ScratchMemory, LargerBatchTakesNoLessTime) {
  const std::int64_t most = vgg16(64).largest_batch();
  ASSERT_GT(most, 130);
  for (const auto& [first, last] : {std::pair(std::int64_t(64), most), {most + 1, most + 40}}) {
    Seconds before;
    for (std::int64_t batch = first; batch <= last; ++batch) {
      const Seconds time = vgg16(batch).iteration_time();
      EXPECT_GE(time, before) << batch;
      before = time;
    }
  }
}

// Only kernels at which most is alive lose their algorithm, one after another: all at once took 27 % of the
// throughput from batch 116 to 130.
TEST(ScratchMemory, FewAlgorithmsChangeAtATime) {
  const Prediction first = vgg16(100);
  const Bytes scratch = largest_scratch(first);
  double rate = first.throughput();
  Bytes memory = first.memory.total();
  for (std::int64_t batch = 101; batch <= 130; ++batch) {
    const Prediction p = vgg16(batch);
    EXPECT_GT(p.throughput(), rate * (p.memory.scratch_limited ? 0.94 : 0.998)) << batch;
    EXPECT_GE(p.memory.total(), memory - scratch) << batch;
    EXPECT_LE(p.memory.needed(), p.usable_memory()) << batch;
    rate = p.throughput();
    memory = p.memory.total();
  }
  EXPECT_GT(rate, first.throughput() * 0.9);
}

// The scratch memory of each convolution and all that is alive beside it fit, and these costs make the plan.
TEST(ScratchMemory, PlanIsOfTheTimedAlgorithms) {
  static SpecCache specs = test::source_specs();
  for (const int gpus : {1, 2}) {
    for (const std::int64_t batch : {107, 108, 120, 130}) {
      Scenario scenario{.model = "vgg16", .framework = "pytorch", .gpu = "rtx2080ti", .batch = batch};
      scenario.cluster.gpus = gpus;
      if (gpus > 1) scenario.cluster.network = "pcie3";
      const Prediction p = predict(scenario, specs);
      const Iteration& iteration = p.iterations.front();
      const MemoryPlan alone = plan_memory(*iteration.memory, *iteration.step, iteration.costs,
                                           static_cast<double>(batch), *p.framework, p.device_memory);
      const Bytes buffers = gpus > 1 ? alone.use[MemoryCategory::weight_gradients] : Bytes();
      EXPECT_TRUE(p.fits) << batch;
      EXPECT_EQ(p.memory.total(), alone.total() + buffers) << batch;
    }
  }
}

// A cluster that takes memory changes algorithms, and one that gives it back changes them back.
TEST(ScratchMemory, AnotherClusterIsPredictedAsFromTheStart) {
  static SpecCache specs = test::source_specs();
  Scenario scenario{.model = "vgg16", .framework = "pytorch", .gpu = "rtx2080ti", .batch = 112};
  const Prediction one = predict(scenario, specs);
  scenario.cluster.gpus = 2;
  scenario.cluster.network = "pcie3";
  const Prediction two = predict(scenario, specs);
  ASSERT_GT(two.iterations.front().timeline.iteration, one.iterations.front().timeline.iteration);
  const Prediction there = with_cluster(one, two.scenario.cluster, two.sync);
  EXPECT_EQ(there.iteration_time(), two.iteration_time());
  EXPECT_EQ(there.memory.total(), two.memory.total());
  const Prediction back = with_cluster(there, {}, std::nullopt);
  EXPECT_EQ(back.iteration_time(), one.iteration_time());
  EXPECT_EQ(back.memory.total(), one.memory.total());
}

TEST(ScratchMemory, RemediesStartFromThePrediction) {
  const Prediction p = vgg16(120);
  ASSERT_TRUE(p.memory.scratch_limited);
  const Saving as_it_is = remedies(p).front();
  EXPECT_EQ(as_it_is.total, p.memory.total());
  EXPECT_EQ(as_it_is.time, p.iterations.front().computing());
  EXPECT_TRUE(as_it_is.fits);
}

// A batch that does not fit has the times of a larger GPU, and needs the bytes without scratch memory.
TEST(ScratchMemory, NoLimitWhereNotEvenTensorsFit) {
  const Prediction p = vgg16(512);
  EXPECT_FALSE(p.fits);
  EXPECT_EQ(largest_scratch(p), Bytes());
  const Iteration& iteration = p.iterations.front();
  const std::vector<KernelCost> unlimited = estimate(*iteration.step, 512, *p.calibration, p.factors);
  for (std::size_t k = 0; k < unlimited.size(); ++k) {
    EXPECT_EQ(iteration.costs[k].total, unlimited[k].total) << k;
    EXPECT_EQ(iteration.costs[k].algorithm, unlimited[k].algorithm) << k;
  }
}

// TensorFlow's limit is a number, whatever is left.
TEST(ScratchMemory, OtherFrameworksHaveALimitOfTheirOwn) {
  const Prediction p = vgg16(4096, "tensorflow");
  EXPECT_FALSE(p.memory.scratch_limited);
  EXPECT_GT(largest_scratch(p), Bytes());
}

}  // namespace
}  // namespace tbdsim
