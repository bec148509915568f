// Memory of steps put together by hand.
#include "simulate/memory_plan.h"

#include <gmock/gmock.h>

namespace tbdsim {
namespace {

Framework framework(double workspace_limit, double context) {
  Framework made;
  made.workspace_limit = Bytes(workspace_limit);
  made.context_memory = Bytes(context);
  return made;
}

Kernel with_workspace(Size bytes, std::int64_t repeat = 1) {
  Kernel kernel;
  kernel.workspace_bytes = bytes;
  kernel.repeat = repeat;
  return kernel;
}

// Four kernels. Weights 100 B throughout; a feature map of 10 b in kernels 0-2; a gradient map of 30 b in
// kernels 2-3; a weight gradient of 100 B in kernel 3; 50 B of optimizer state throughout. Alive beside the
// 150 B:
//   kernel 0: 10 b    1: 10 b    2: 10 b + 30 b    3: 30 b + 100
// At b = 2 kernel 3 has most (160 against 80 B), at b = 20 kernel 2 (800 against 700 B).
TrainingStep four_kernels() {
  TrainingStep step;
  step.kernels = {with_workspace({}), with_workspace({0, 5}), with_workspace({}), with_workspace({})};
  step.tensors = {{TensorRole::weights, 0, {100, 0}, 0, 3},
                  {TensorRole::feature_map, 0, {0, 10}, 0, 2},
                  {TensorRole::gradient_map, 0, {0, 30}, 2, 3},
                  {TensorRole::weight_gradients, 0, {100, 0}, 3, 3},
                  {TensorRole::dynamic, 0, {50, 0}, 0, 3}};
  return step;
}

TEST(MemoryPlan, CategoriesAtThePeakOfASmallBatch) {
  const MemoryPlan plan = plan_memory(four_kernels(), 2, framework(1000, 7));
  EXPECT_EQ(plan.peak_kernel, 3);
  EXPECT_EQ(plan.weights.si(), 100);
  EXPECT_EQ(plan.weight_gradients.si(), 100);
  EXPECT_EQ(plan.feature_maps.si(), 60);  // the paper counts gradient maps with feature maps
  EXPECT_EQ(plan.dynamic.si(), 50);
  EXPECT_EQ(plan.workspace.si(), 10);  // kernel 1's 5 b, kept by the framework
  EXPECT_EQ(plan.context.si(), 7);
  EXPECT_EQ(plan.model().si(), 100 + 100 + 60 + 50 + 10);
  EXPECT_EQ(plan.total().si(), 327);
}

TEST(MemoryPlan, CategoriesAtThePeakOfALargeBatch) {
  const MemoryPlan plan = plan_memory(four_kernels(), 20, framework(1000, 7));
  EXPECT_EQ(plan.peak_kernel, 2);
  EXPECT_EQ(plan.weight_gradients.si(), 0);  // not yet there
  EXPECT_EQ(plan.feature_maps.si(), 800);
  EXPECT_EQ(plan.workspace.si(), 100);
}

// At b = 10 kernels 2 and 3 need 400 B each: the first counts.
TEST(MemoryPlan, FirstOfEqualPeaks) {
  EXPECT_EQ(plan_memory(four_kernels(), 10, framework(1000, 7)).peak_kernel, 2);
}

// The kernel wants 5 b: 100 B at b = 20. Up to the limit it gets them, above it runs without.
TEST(MemoryPlan, WorkspaceUpToTheLimit) {
  EXPECT_EQ(plan_memory(four_kernels(), 20, framework(100, 0)).workspace.si(), 100);
  EXPECT_EQ(plan_memory(four_kernels(), 20, framework(99, 0)).workspace.si(), 0);
}

// Kernel 3 has most at small batches, kernel 2 at large ones, the others never.
TEST(MemoryOutline, KernelsThatCanHaveMost) {
  const MemoryOutline outline = memory_outline(four_kernels());
  ASSERT_EQ(outline.peaks.size(), 2u);
  EXPECT_EQ(outline.peaks[0].kernel, 2);
  EXPECT_EQ(outline.peaks[1].kernel, 3);
  EXPECT_EQ(outline.scratch.size(), 2u);  // none, and 5 b
}

TEST(MemoryPlan, EmptyStepNeedsTheContextOnly) {
  EXPECT_EQ(plan_memory(TrainingStep{}, 1, framework(100, 7)).total().si(), 7);
}

// Total at large batches: 150 + 40 b + 5 b + 7 B. 1000 B hold b = 18 (967 B), not 19 (1012 B).
TEST(LargestBatch, LastThatFits) {
  const Framework f = framework(1e6, 7);
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(1000), 1'000'000), 18);
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(967), 1'000'000), 18);  // exactly full
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(966), 1'000'000), 17);
}

TEST(LargestBatch, NoneAndTheMost) {
  const Framework f = framework(1e6, 7);
  // b = 1: kernel 3 has most, 150 + 30 + 100 B, with 5 B of workspace and the context 292 B.
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(291), 1000), 0);
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(292), 1000), 1);
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(1e9), 1000), 1000);
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(1e9), 1), 1);
}

// Above a workspace limit of 60 B (b = 12) the kernel runs without scratch memory, so b = 13 and 14 need less
// than b = 12: 157 + 45 * 12 = 697 B, 157 + 40 * 13 = 677 B, 157 + 40 * 14 = 717 B. In 690 B fit b = 1 to 11
// (652 B) and b = 13.
TEST(LargestBatch, WorkspaceDroppedAboveTheLimit) {
  const Framework f = framework(60, 7);
  EXPECT_LE(plan_memory(four_kernels(), 13, f).total().si(), 690);
  EXPECT_EQ(largest_batch(four_kernels(), f, Bytes(690), 1000), 13);
}

}  // namespace
}  // namespace tbdsim
