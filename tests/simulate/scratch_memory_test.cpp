// PyTorch's convolutions take the fastest algorithm whose scratch memory fits beside everything else.
#include "simulate/prediction/scratch_memory.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
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
  EXPECT_FALSE(with_scratch_left(p, p.iterations.front(), p.iterations.front().costs, 64));
  EXPECT_GT(largest_scratch(p), Bytes(1024.0 * 1024 * 1024));  // no limit of a GiB
}

// A batch that fits without scratch memory runs, with algorithms that need no more than what is left.
TEST(ScratchMemory, FullGpuTakesSlowerAlgorithms) {
  const Prediction large = vgg16(64);
  const std::int64_t most = large.largest_batch();
  const Prediction full = vgg16(most);
  EXPECT_TRUE(full.fits);
  EXPECT_FALSE(vgg16(most + 1).fits);
  EXPECT_LE(full.memory.needed(), full.usable_memory());
  EXPECT_LT(largest_scratch(full), largest_scratch(large));
  EXPECT_LT(full.throughput(), large.throughput());
}

TEST(ScratchMemory, LargerBatchTakesNoLessTime) {
  Seconds before;
  for (std::int64_t batch = 64; batch <= 160; batch += 4) {
    const Seconds time = vgg16(batch).iteration_time();
    EXPECT_GE(time, before) << batch;
    before = time;
  }
}

// TensorFlow's limit is a number, whatever is left.
TEST(ScratchMemory, OtherFrameworksHaveALimitOfTheirOwn) {
  const Prediction p = vgg16(4096, "tensorflow");
  EXPECT_FALSE(with_scratch_left(p, p.iterations.front(), p.iterations.front().costs, 4096));
}

}  // namespace
}  // namespace tbdsim
