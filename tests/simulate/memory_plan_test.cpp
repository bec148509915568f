// Memory of steps put together by hand.
#include "simulate/memory/memory_plan.h"

#include <gmock/gmock.h>

#include "simulate/memory/autotune_workspace.h"
#include "simulate/memory/driver_memory.h"

namespace tbdsim {
namespace {

Framework framework(double context, const Allocator& allocator = {}) {
  Framework made;
  made.workspace_limit = Bytes(1e12);
  made.context_memory = Bytes(context);
  made.allocator = allocator;
  return made;
}

Allocator planned_ahead(double block = 0, double large_block = 0) {
  Allocator allocator;
  allocator.static_plan = true;
  allocator.block = Bytes(block);
  allocator.large_block = Bytes(large_block);
  return allocator;
}

Allocator that_tries() {
  Allocator allocator;
  allocator.autotunes = true;
  return allocator;
}

// Four kernels, the second a convolution. Weights 100 B throughout; a feature map of 10 b in kernels 0-2; a
// gradient map of 30 b in kernels 2-3; a weight gradient of 100 B in kernel 3; 50 B of optimizer state
// throughout. Alive beside the 150 B:
//   kernel 0: 10 b    1: 10 b    2: 10 b + 30 b    3: 30 b + 100
// At b = 2 kernel 3 has most (160 against 80 B), at b = 20 kernel 2 (800 against 700 B).
TrainingStep four_kernels() {
  TrainingStep step;
  step.kernels.resize(4);
  step.kernels[1].kind = KernelKind::convolution;
  step.tensors = {{TensorRole::weights, 0, {100, 0}, 0, 3},
                  {TensorRole::feature_map, 0, {0, 10}, 0, 2},
                  {TensorRole::gradient_map, 0, {0, 30}, 2, 3},
                  {TensorRole::weight_gradients, 0, {100, 0}, 3, 3},
                  {TensorRole::dynamic, 0, {50, 0}, 0, 3}};
  return step;
}

// The convolution's workspace is given.
MemoryPlan plan(const TrainingStep& step, double batch, const Framework& f, double workspace = 0,
                double page = 0) {
  std::vector<KernelCost> costs(step.kernels.size());
  for (std::size_t k = 0; k < costs.size(); ++k) {
    if (step.kernels[k].kind == KernelKind::convolution) costs[k].workspace = Bytes(workspace);
  }
  return plan_memory(memory_outline(step), step, costs, batch, f, {Bytes(page), Bytes()});
}

TEST(MemoryPlan, CategoriesAtThePeakOfASmallBatch) {
  const MemoryPlan at_2 = plan(four_kernels(), 2, framework(7), 10);
  EXPECT_EQ(at_2.peak_kernel, 3);
  EXPECT_EQ(at_2.use[MemoryCategory::weights].si(), 100);
  EXPECT_EQ(at_2.use[MemoryCategory::weight_gradients].si(), 100);
  EXPECT_EQ(at_2.use[MemoryCategory::feature_maps].si(),
            60);  // the paper counts gradient maps with feature maps
  EXPECT_EQ(at_2.use[MemoryCategory::dynamic].si(), 50);
  EXPECT_EQ(at_2.use[MemoryCategory::workspace].si(), 0);  // the convolution's is gone by then
  EXPECT_EQ(at_2.context.si(), 7);
  EXPECT_EQ(at_2.total().si(), 317);
}

TEST(MemoryPlan, CategoriesAtThePeakOfALargeBatch) {
  const MemoryPlan at_20 = plan(four_kernels(), 20, framework(7));
  EXPECT_EQ(at_20.peak_kernel, 2);
  EXPECT_EQ(at_20.use[MemoryCategory::weight_gradients].si(), 0);  // not yet there
  EXPECT_EQ(at_20.use[MemoryCategory::feature_maps].si(), 800);
}

// At b = 10 kernels 2 and 3 need 400 B each: the first counts.
TEST(MemoryPlan, FirstOfEqualPeaks) { EXPECT_EQ(plan(four_kernels(), 10, framework(7)).peak_kernel, 2); }

// With 700 B of workspace the convolution has most at b = 20: 200 + 700 B.
TEST(MemoryPlan, WorkspaceCanMakeThePeak) {
  const MemoryPlan wide = plan(four_kernels(), 20, framework(0), 700);
  EXPECT_EQ(wide.peak_kernel, 1);
  EXPECT_EQ(wide.use[MemoryCategory::workspace].si(), 700);
  EXPECT_EQ(wide.use[MemoryCategory::feature_maps].si(), 200);
  EXPECT_EQ(wide.model().si(), 150 + 200 + 700);
}

TEST(MemoryPlan, TemporaryTensorsAreWorkspace) {
  TrainingStep step = four_kernels();
  step.kernels[2].scratch_bytes = {0, 4};
  EXPECT_EQ(plan(step, 20, framework(0)).use[MemoryCategory::workspace].si(), 80);
}

TEST(MemoryPlan, EmptyStepNeedsTheContextOnly) {
  EXPECT_EQ(plan(TrainingStep{}, 1, framework(7)).total().si(), 7);
}

// Planned ahead: blocks of 10 b and 30 b, of which the gradient could not take the map's place, and the
// largest workspace, whenever each is needed.
TEST(MemoryPlan, PlannedAheadEverythingStays) {
  const MemoryPlan at_2 = plan(four_kernels(), 2, framework(0, planned_ahead()), 10);
  EXPECT_EQ(at_2.use[MemoryCategory::feature_maps].si(), 80);
  EXPECT_EQ(at_2.use[MemoryCategory::workspace].si(), 10);
  EXPECT_EQ(at_2.use[MemoryCategory::weight_gradients].si(), 100);
}

// Pages of 4 KiB, slabs of 2 KiB: a block of 512 B is asked for as 544 B, which are 1 KiB, two of them a
// slab; one of 1500 B is alone in a slab, one of 2040 B is more than a slab and takes a page.
TEST(MemoryPlan, DriverGivesPagesAndPartsOfSlabs) {
  const Bytes page(4096);
  EXPECT_EQ(from_driver(Bytes(544), page).si(), 1024);
  EXPECT_NEAR(from_driver(Bytes(100), page).si(), 512, 1e-9);
  EXPECT_EQ(from_driver(Bytes(1532), page).si(), 2048);
  EXPECT_EQ(from_driver(Bytes(2072), page).si(), 4096);
  EXPECT_EQ(from_driver(Bytes(4097), page).si(), 8192);
  EXPECT_EQ(from_driver(Bytes(777), Bytes()).si(), 777);
}

// At b = 2 blocks of 20 and 60 B and parameters of 100, 100 and 50 B take 512 B each, a workspace of 5000 B
// two pages. Categories hold what was asked for. Pools that round sizes themselves, and what is asked for as
// it is needed, take larger pieces.
TEST(MemoryPlan, RoundingIsInNoCategory) {
  const MemoryPlan exact = plan(four_kernels(), 2, framework(0, planned_ahead()), 5000);
  const MemoryPlan paged = plan(four_kernels(), 2, framework(0, planned_ahead()), 5000, 4096);
  EXPECT_EQ(exact.context, Bytes());
  EXPECT_EQ(paged.model(), exact.model());
  EXPECT_NEAR(paged.total().si(), 5 * 512 + 8192, 1e-9);
  EXPECT_EQ(plan(four_kernels(), 2, framework(0, planned_ahead(64, 90)), 5000, 4096).context, Bytes());
  EXPECT_EQ(plan(four_kernels(), 2, framework(0), 5000, 4096).context, Bytes());
}

// Two handles of 40 B stay beside the 317 B of four_kernels() at a batch of two, whatever is alive.
TEST(MemoryPlan, WorkspacesOfLibrariesStay) {
  const TrainingStep step = four_kernels();
  Framework f = framework(7);
  f.allocator.cublas_workspaces = 2;
  const std::vector<KernelCost> costs(step.kernels.size());
  const MemoryPlan kept = plan_memory(memory_outline(step), step, costs, 2, f, {Bytes(), Bytes(40)});
  EXPECT_EQ(kept.kept_workspaces.si(), 80);
  EXPECT_EQ(kept.use[MemoryCategory::workspace].si(), 80);
  EXPECT_EQ(kept.total().si(), 397);
}

TEST(MemoryPlan, WorkspacesOfCublas) {
  GpuSpec gpu;
  gpu.compute_capability = 8.0;
  EXPECT_EQ(cublas_workspace(gpu), Bytes(2 * 4096 * 1024 + 8 * 16 * 1024));
  gpu.compute_capability = 9.0;
  EXPECT_EQ(cublas_workspace(gpu), Bytes(32 * 1024 * 1024));
}

TEST(MemoryPlan, PagesOfDrivers) {
  GpuSpec gpu;
  gpu.compute_capability = 5.2;
  EXPECT_EQ(driver_page(gpu), Bytes());
  gpu.compute_capability = 6.1;
  EXPECT_EQ(driver_page(gpu), Bytes(2 * 1024 * 1024));
  gpu.compute_capability = 12.0;
  EXPECT_EQ(driver_page(gpu), Bytes(2 * 1024 * 1024));
}

TEST(MemoryPlan, BlocksAreMultiples) {
  const Framework f = framework(0, planned_ahead(64, 90));
  const MemoryPlan at_2 = plan(four_kernels(), 2, f, 10);
  EXPECT_EQ(at_2.use[MemoryCategory::weights].si(), 180);       // 100 B are above 90 B: two of these
  EXPECT_EQ(at_2.use[MemoryCategory::dynamic].si(), 64);        // 50 B
  EXPECT_EQ(at_2.use[MemoryCategory::feature_maps].si(), 128);  // 20 B and 60 B
  EXPECT_EQ(at_2.use[MemoryCategory::workspace].si(), 64);
}

// Library state is in no block of the pool, but in the total.
TEST(MemoryPlan, LibraryStateIsNotShared) {
  TrainingStep step = four_kernels();
  step.tensors[1].library_state = true;
  const MemoryOutline outline = memory_outline(step);
  EXPECT_EQ(outline.library_state, (Size{0, 10}));
  EXPECT_EQ(plan(step, 2, framework(0, planned_ahead())).use[MemoryCategory::feature_maps].si(), 80);
}

// A 3x3 convolution of 512 channels and filters on 14 x 14, one sample: the FFT's tiles take
// 9216 B x (512 + 512 + 512 x 512) = 2,425,356,288 B more than the 100 B alive there.
TEST(MemoryPlan, FirstIterationTriesAlgorithms) {
  TrainingStep step = four_kernels();
  step.kernels[1].shape = ConvShape{.images = {0, 1},
                                    .channels = 512,
                                    .height = 14,
                                    .width = 14,
                                    .filters = 512,
                                    .out_height = 14,
                                    .out_width = 14,
                                    .kernel_height = 3,
                                    .kernel_width = 3};
  const MemoryPlan tried = plan(step, 1, framework(0, that_tries()));
  EXPECT_EQ((tried.model() + tried.autotuning).si(), 150 + 10 + 2'425'356'288.0);
  EXPECT_EQ(plan(step, 1, framework(0)).autotuning.si(), 0);
}

TEST(TriedWorkspace, NothingBeyondTheLimitOrWithAStride) {
  Kernel kernel;
  ConvShape shape{.images = {0, 1},
                  .channels = 1,
                  .filters = 1,
                  .out_height = 30,
                  .out_width = 60,
                  .kernel_height = 3,
                  .kernel_width = 3};
  kernel.shape = shape;
  EXPECT_EQ(autotune_workspace(kernel, 2, Bytes(1e9)).si(), 9216 * (2 * 2 * 2 + 1));  // two tiles each
  EXPECT_EQ(autotune_workspace(kernel, 2, Bytes(9216 * 9 - 1)).si(), 0);
  shape.stride_height = 2;
  kernel.shape = shape;
  EXPECT_EQ(autotune_workspace(kernel, 2, Bytes(1e9)).si(), 0);
}

// MXNet's key-value store on two GPUs: half of the state and copies, a half to add up and one half for the
// other GPU's gradients.
TEST(MemoryPlan, KeyValueStoreOnSeveralGpus) {
  Framework f = framework(0);
  f.lowering.parameter_copies = 1;
  MemoryPlan one;
  one.use[MemoryCategory::weight_gradients] = Bytes(100);
  one.use[MemoryCategory::dynamic] = Bytes(200);
  EXPECT_EQ(on_one_of(1, one, f).use[MemoryCategory::dynamic].si(), 200);
  EXPECT_EQ(on_one_of(2, one, f).use[MemoryCategory::dynamic].si(), 100 + 100);
  EXPECT_EQ(on_one_of(4, one, f).use[MemoryCategory::dynamic].si(), 50 + 100);
  EXPECT_EQ(on_one_of(4, one, framework(0)).use[MemoryCategory::dynamic].si(), 200);
}

// Kernel 3 has most at small batches, kernel 2 at large ones, the others never.
TEST(MemoryOutline, KernelsThatCanHaveMost) {
  const MemoryOutline outline = memory_outline(four_kernels());
  ASSERT_EQ(outline.peaks.size(), 2u);
  EXPECT_EQ(outline.peaks[0].kernel, 2);
  EXPECT_EQ(outline.peaks[1].kernel, 3);
  ASSERT_EQ(outline.convolutions.size(), 1u);
  EXPECT_EQ(outline.convolutions[0].kernel, 1);
}

TEST(LargestBatch, LastThatFits) {
  const auto up_to = [](std::int64_t last) { return [last](std::int64_t batch) { return batch <= last; }; };
  for (const std::int64_t last : {1, 2, 3, 17, 18, 63, 64, 65, 999'999}) {
    EXPECT_EQ(largest_batch(up_to(last), 1'000'000), last);
  }
  EXPECT_EQ(largest_batch(up_to(0), 1000), 0);
  EXPECT_EQ(largest_batch(up_to(5000), 1000), 1000);
  EXPECT_EQ(largest_batch(up_to(5000), 1), 1);
}

std::int64_t blocks_of(const std::vector<PoolBlocks>& blocks, Size bytes) {
  std::int64_t count = 0;
  for (const PoolBlocks& some : blocks) count += some.bytes == bytes ? some.count : 0;
  return count;
}

// Two maps of 100 b, one dead when the next of 60 b comes, which takes its block; a third of 5 b is too small
// for it: 100 / 5 is beyond the range of 16.
TEST(PlannedPool, FreeBlocksAreTakenWithinARange) {
  TrainingStep step;
  step.kernels.resize(4);
  step.tensors = {{TensorRole::feature_map, 0, {0, 100}, 0, 0},
                  {TensorRole::feature_map, 0, {0, 100}, 0, 3},
                  {TensorRole::feature_map, 0, {0, 60}, 1, 2},
                  {TensorRole::feature_map, 0, {0, 5}, 3, 3}};
  const std::vector<PoolBlocks> blocks = planned_pool(step);
  EXPECT_EQ(blocks_of(blocks, {0, 100}), 2);
  EXPECT_EQ(blocks_of(blocks, {0, 5}), 1);
  EXPECT_EQ(blocks.size(), 2u);
}

TEST(PlannedPool, SmallerBlocksGrow) {
  TrainingStep step;
  step.kernels.resize(2);
  step.tensors = {{TensorRole::feature_map, 0, {0, 10}, 0, 0}, {TensorRole::feature_map, 0, {0, 40}, 1, 1}};
  const std::vector<PoolBlocks> blocks = planned_pool(step);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].bytes, (Size{0, 40}));
}

// The gradient that an element-wise kernel reads makes room for the one it writes; a convolution's does not.
TEST(PlannedPool, ElementwiseGradientsInPlace) {
  TrainingStep step;
  step.kernels.resize(2);
  step.kernels[1].phase = Phase::backward_data;
  step.tensors = {{TensorRole::gradient_map, 1, {0, 10}, 0, 1}, {TensorRole::gradient_map, 0, {0, 10}, 1, 1}};
  EXPECT_EQ(blocks_of(planned_pool(step), {0, 10}), 1);
  step.kernels[1].kind = KernelKind::convolution;
  EXPECT_EQ(blocks_of(planned_pool(step), {0, 10}), 2);
}

// Steps of a recurrence are blocks of their own; scratch tensors are shared with what is free.
TEST(PlannedPool, PiecesAndScratch) {
  TrainingStep step;
  step.kernels.resize(2);
  step.kernels[1].scratch_bytes = {0, 3};
  step.tensors = {{TensorRole::feature_map, 0, {0, 30}, 0, 0}};
  step.tensors[0].pieces = 10;
  const std::vector<PoolBlocks> blocks = planned_pool(step);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].bytes, (Size{0, 3}));
  EXPECT_EQ(blocks[0].count, 10);
}

}  // namespace
}  // namespace tbdsim
