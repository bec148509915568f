// The kernels of a step, expanded once for all batches and GPUs.
#include "simulate/workload/workload.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

// a a b a b: a runs 1 + 1 + 3 times, b 2 + 1.
TEST(Workload, KernelsThatAreTheSameRunTogether) {
  TrainingStep step;
  for (const auto& [repeat, duplicate_of] : {std::pair(1, -1), {1, 0}, {2, -1}, {3, 0}, {1, 2}}) {
    Kernel& kernel = step.kernels.emplace_back();
    kernel.repeat = repeat;
    kernel.duplicate_of = duplicate_of;
  }
  const std::vector<KernelRuns> runs = kernel_runs(step.kernels);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].kernel, 0u);
  EXPECT_EQ(runs[0].times, 5);
  EXPECT_EQ(runs[0].squares, 1 + 1 + 9);
  EXPECT_EQ(runs[1].kernel, 2u);
  EXPECT_EQ(runs[1].times, 3);
  EXPECT_EQ(runs[1].squares, 4 + 1);
}

}  // namespace
}  // namespace tbdsim
