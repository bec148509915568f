// Work of the kernels that each family of operators becomes, but convolutions, products and attention,
// derived by hand.
#include <gmock/gmock.h>

#include "graphs/captured/operator_table.h"
#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(CapturedNorms, PassOverMemoryAsTheirKernelsDo) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(3), fixed_size(4), fixed_size(5)});
  const int y = b.tensor({growing(1), fixed_size(3), fixed_size(4), fixed_size(5)});
  const int s = b.tensor({fixed_size(3)}),
            r = b.tensor({fixed_size(3)}, Dtype::f32, StorageRole::buffer, "a.running_mean");
  b.add("aten.native_batch_norm.default", {ref(x), ref(s), ref(s), ref(r), ref(r), flag(true), {0.1}, {1e-5}},
        {y, s, s}, StepPhase::forward, 1);
  b.add("aten.native_batch_norm_backward.default",
        {ref(y),
         ref(x),
         ref(s),
         ref(r),
         ref(r),
         ref(s),
         ref(s),
         flag(true),
         {1e-5},
         list({flag(true), flag(true), flag(true)})},
        {x, s, s}, StepPhase::backward);
  b.add("aten.native_layer_norm.default", {ref(x), list({whole(4), whole(5)}), ref(s), ref(s), {1e-5}},
        {y, s, s});
  b.add("aten.native_layer_norm_backward.default",
        {ref(y), ref(x), list({whole(4), whole(5)}), ref(s), ref(s), ref(s), ref(s),
         list({flag(true), flag(true), flag(true)})},
        {x, s, s}, StepPhase::backward);
  b.add("aten.native_group_norm.default",
        {ref(x), ref(s), ref(s), {growing(1)}, whole(3), whole(20), whole(3), {1e-5}}, {y, s, s});
  const TrainingStep step = b.lowered();
  // 60 numbers of 4 B an image; of its 3 channels, each a group, two numbers of 4 B.
  EXPECT_THAT(works(step), ElementsAre(work("batch_norm", KernelKind::batch_norm, Phase::forward,
                                            growing(360), growing(480), growing(240)),
                                       work("batch_norm", KernelKind::batch_norm, Phase::backward_data,
                                            growing(540), growing(960), growing(240)),
                                       work("layer_norm", KernelKind::layer_norm, Phase::forward,
                                            growing(480), growing(240), growing(240)),
                                       work("layer_norm", KernelKind::layer_norm, Phase::backward_data,
                                            growing(600), growing(480), growing(240)),
                                       work("layer_norm", KernelKind::layer_norm, Phase::backward_weights,
                                            growing(300), growing(480), {}),
                                       work("group_moments", KernelKind::reduction, Phase::forward,
                                            growing(180), growing(240), growing(24)),
                                       work("group_factors", KernelKind::elementwise, Phase::forward,
                                            growing(6), growing(24), growing(24)),
                                       work("group_norm", KernelKind::elementwise, Phase::forward,
                                            growing(120), growing(264), growing(240))));
  EXPECT_EQ(std::get<MatrixShape>(step.kernels[2].shape), (MatrixShape{growing(3), 20}));
  EXPECT_EQ(std::get<ImageShape>(step.kernels[0].shape).channels, 3);
  EXPECT_EQ(step.layers[1].statistics, 3);
}

TEST(CapturedPooling, KeepsPlacesOfMaxima) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(2), fixed_size(8), fixed_size(8)});
  const int y = b.tensor({growing(1), fixed_size(2), fixed_size(4), fixed_size(4)});
  const int places = b.tensor({growing(1), fixed_size(2), fixed_size(4), fixed_size(4)}, Dtype::i64);
  b.add("aten.max_pool2d_with_indices.default",
        {ref(x), pair(3, 3), pair(2, 2), pair(1, 1), pair(1, 1), flag(false)}, {y, places});
  b.add("aten.max_pool2d_with_indices_backward.default",
        {ref(y), ref(x), pair(3, 3), pair(2, 2), pair(1, 1), pair(1, 1), flag(false), ref(places)}, {x},
        StepPhase::backward);
  // x: 512 B; y: 128 B; places: 256 B. 9 comparisons an output, in the backward pass as many.
  EXPECT_THAT(works(b.lowered()),
              ElementsAre(work("max_pool2d_with_indices", KernelKind::pooling, Phase::forward, growing(288),
                               growing(512), growing(384)),
                          work("max_pool2d_with_indices_backward", KernelKind::pooling, Phase::backward_data,
                               growing(288), growing(384), growing(512))));
  for (const Kernel& kernel : b.lowered({.aten_kernels = true}).kernels)
    EXPECT_EQ(kernel.access, Access::elements);
}

TEST(CapturedElementwise, ReadsArgumentsOnceAndBroadcastOnesByTheirOwnBytes) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(10)});
  const int scale = b.tensor({fixed_size(10)});
  const int y = b.tensor({growing(1), fixed_size(10)});
  b.add("aten.mul.Tensor", {ref(x), ref(scale)}, {y});
  b.add("aten.mul.Tensor", {ref(x), ref(x)}, {y});
  b.add("aten.zero_.default", {ref(y)}, {y});
  b.add("aten.view.default", {ref(y), list({whole(10)})}, {y});
  EXPECT_THAT(
      works(b.lowered()),
      ElementsAre(work("mul", KernelKind::elementwise, Phase::forward, growing(10), {40, 40}, growing(40)),
                  work("mul", KernelKind::elementwise, Phase::forward, growing(10), growing(40), growing(40)),
                  work("zero", KernelKind::elementwise, Phase::forward, {}, {}, growing(40))));
}

TEST(CapturedElementwise, CopiesCastAndTranspose) {
  StepBuilder b;
  const int x = b.tensor({fixed_size(6), fixed_size(4)});
  const int half = b.tensor({fixed_size(6), fixed_size(4)}, Dtype::f16);
  const int y = b.tensor({fixed_size(4), fixed_size(6)});
  b.add("aten._to_copy.default", {ref(x)}, {half});
  b.add("aten.clone.default", {ref(b.transposed(x))}, {y});
  const TrainingStep step = b.lowered();
  ASSERT_EQ(step.kernels.size(), 2u);
  EXPECT_EQ(step.kernels[0].op, "cast");
  EXPECT_EQ(step.kernels[0].written_bytes, fixed_size(48));
  EXPECT_EQ(step.kernels[0].element_bytes, 3);
  EXPECT_EQ(step.kernels[0].access, Access::vectors);
  EXPECT_EQ(step.kernels[1].kind, KernelKind::transpose);
  EXPECT_EQ(step.kernels[1].access, Access::across);
}

// Threads take several numbers at a time where all tensors lie alike and have one type.
TEST(CapturedElementwise, TakesOneNumberAtATimeOfOthers) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(6), fixed_size(4)});
  const int half = b.tensor({growing(1), fixed_size(6), fixed_size(4)}, Dtype::f16);
  const int row = b.tensor({fixed_size(4)});
  const int number = b.tensor({});
  const int square = b.tensor({fixed_size(6), fixed_size(4)}),
            other = b.tensor({fixed_size(4), fixed_size(6)});
  const std::vector<std::vector<Argument>> arguments = {
      {ref(x), ref(x)}, {ref(x), ref(number)}, {ref(x), ref(row)}, {ref(x), ref(half)}};
  for (const auto& of : arguments) b.add("aten.mul.Tensor", of, {x});
  b.add("aten.add.Tensor", {ref(square), ref(b.transposed(other))}, {square});
  b.add("aten._to_copy.default", {ref(half)}, {x});
  std::vector<Access> found;
  for (const Kernel& kernel : b.lowered().kernels) found.push_back(kernel.access);
  EXPECT_THAT(found, ElementsAre(Access::vectors, Access::vectors, Access::elements, Access::elements,
                                 Access::across, Access::elements));
}

TEST(CapturedReduction, SumsColumns) {
  StepBuilder b;
  const int x = b.tensor({growing(5), fixed_size(6)});
  const int columns = b.tensor({fixed_size(6)}), rows = b.tensor({growing(5)});
  b.add("aten.sum.dim_IntList", {ref(x), list({whole(0)})}, {columns});
  b.add("aten.sum.dim_IntList", {ref(x), list({whole(-1)})}, {rows});
  const TrainingStep step = b.lowered();
  EXPECT_EQ(step.kernels[0].access, Access::columns);
  EXPECT_EQ(std::get<MatrixShape>(step.kernels[0].shape), (MatrixShape{growing(5), 6}));
  EXPECT_EQ(step.kernels[1].access, Access::vectors);
}

// bf16: statistics, moving ones and the result; gradients in one kernel of NCHW images.
TEST(CapturedNorms, ArePyTorchsOwnInBf16) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(3), fixed_size(4), fixed_size(5)}, Dtype::bf16);
  const int s = b.tensor({fixed_size(3)});
  b.add("aten.native_batch_norm.default", {ref(x), ref(s), ref(s), ref(s), ref(s), flag(true), {0.1}, {1e-5}},
        {x, s, s});
  b.add("aten.native_batch_norm_backward.default",
        {ref(x),
         ref(x),
         ref(s),
         ref(s),
         ref(s),
         ref(s),
         ref(s),
         flag(true),
         {1e-5},
         list({flag(true), flag(true), flag(true)})},
        {x, s, s}, StepPhase::backward);
  EXPECT_EQ(b.lowered().kernels.size(), 2u) << "cuDNN's";
  const TrainingStep step = b.lowered({.aten_kernels = true});
  // 60 numbers of 2 B an image.
  EXPECT_THAT(works(step), ElementsAre(work("batch_norm", KernelKind::batch_norm, Phase::forward,
                                            growing(180), growing(120), {}),
                                       work("running_statistics", KernelKind::elementwise, Phase::forward,
                                            fixed_size(12), fixed_size(48), fixed_size(36)),
                                       work("batch_norm", KernelKind::batch_norm, Phase::forward,
                                            growing(180), growing(120), growing(120)),
                                       work("batch_norm", KernelKind::batch_norm, Phase::backward_data,
                                            growing(540), growing(480), growing(120))));
  EXPECT_TRUE(step.kernels[0].channel_blocks);
}

TEST(CapturedEmbedding, FillsAndAddsToTheTable) {
  StepBuilder b;
  const int table = b.tensor({fixed_size(100), fixed_size(8)});
  const int words = b.tensor({growing(5)}, Dtype::i64);
  const int y = b.tensor({growing(5), fixed_size(8)});
  b.add("aten.embedding.default", {ref(table), ref(words)}, {y});
  b.add("aten.embedding_dense_backward.default", {ref(y), ref(words), whole(100)}, {table},
        StepPhase::backward);
  // 5 rows of 32 B a sample, 5 indices of 8 B.
  EXPECT_THAT(
      works(b.lowered()),
      ElementsAre(work("embedding", KernelKind::gather, Phase::forward, {}, growing(200), growing(160)),
                  work("fill", KernelKind::elementwise, Phase::backward_data, {}, {}, fixed_size(3200)),
                  work("embedding_dense_backward", KernelKind::gather, Phase::backward_data, growing(40),
                       growing(360), growing(160))));
  const TrainingStep own = b.lowered({.aten_kernels = true});  // 5 indices with their places, eight times
  ASSERT_EQ(own.kernels.size(), 5u);
  EXPECT_EQ(own.kernels[2].op, "sort");
  EXPECT_EQ(own.kernels[2].repeat, 8);
  EXPECT_EQ(own.kernels[2].written_bytes, growing(80));
  EXPECT_EQ(own.kernels[4].op, "embedding_dense_backward");
  EXPECT_EQ(own.kernels[4].read_bytes, growing(200));
}

// Bags of 20 rows a sample of 4 numbers: 4 B each are read and added, whatever the number of bags.
TEST(CapturedEmbedding, OfBagsReadsEachRow) {
  StepBuilder b;
  const int table = b.tensor({fixed_size(100), fixed_size(4)});
  const int indices = b.tensor({growing(20)}, Dtype::i64);
  const int offsets = b.tensor({growing(1)}, Dtype::i64);
  const int y = b.tensor({growing(1), fixed_size(4)});
  const TrainingStep step =
      b.add("aten._embedding_bag.default", {ref(table), ref(indices), ref(offsets)}, {y}).lowered();
  EXPECT_THAT(works(step), ElementsAre(work("_embedding_bag", KernelKind::gather, Phase::forward, growing(80),
                                            growing(20 * 16 + 20 * 8 + 8), growing(16))));
}

// 6 steps a sample of 5 classes and 2 labels: 2 * 2 + 1 states with blanks between them, 13 operations each.
TEST(CapturedLosses, OfAlignmentsGoOverTheStates) {
  StepBuilder b;
  const int scores = b.tensor({fixed_size(6), growing(1), fixed_size(5)});
  const int targets = b.tensor({growing(1), fixed_size(2)}, Dtype::i64);
  const int loss = b.tensor({growing(1)});
  const int alpha = b.tensor({growing(1), fixed_size(6), fixed_size(5)});
  const TrainingStep step =
      b.add("aten._ctc_loss.default", {ref(scores), ref(targets)}, {loss, alpha}).lowered();
  EXPECT_THAT(works(step), ElementsAre(work("_ctc_loss", KernelKind::reduction, Phase::forward,
                                            growing(6 * 5 * 13), growing(6 * 5 * 4), growing(6 * 5 * 4))));
  EXPECT_EQ(std::get<MatrixShape>(step.kernels[0].shape), (MatrixShape{growing(6), 5}));
}

TEST(CapturedJoins, ShufflePixels) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8), fixed_size(3), fixed_size(3)});
  const int y = b.tensor({growing(1), fixed_size(2), fixed_size(6), fixed_size(6)});
  EXPECT_THAT(works(b.add("aten.pixel_shuffle.default", {ref(x), whole(2)}, {y}).lowered()),
              ElementsAre(work("pixel_shuffle", KernelKind::elementwise, Phase::forward, {}, growing(288),
                               growing(288))));
}

TEST(CapturedForeach, IsOneKernelOrOneForEachTensor) {
  StepBuilder b;
  const int w = b.tensor({fixed_size(10)}, Dtype::f32, StorageRole::parameter, "a.w");
  const int v = b.tensor({fixed_size(6)}, Dtype::f32, StorageRole::parameter, "a.b.w");
  const int dw = b.tensor({fixed_size(10)}, Dtype::f32, StorageRole::gradient, "a.w");
  const int dv = b.tensor({fixed_size(6)}, Dtype::f32, StorageRole::gradient, "a.b.w");
  b.add("aten._foreach_add_.List", {list({ref(w), ref(v)}), list({ref(dw), ref(dv)}), {-0.1}}, {w, v},
        StepPhase::update);
  EXPECT_THAT(works(b.lowered({.update = UpdateKernels::foreach})),
              ElementsAre(work("_foreach_add", KernelKind::update, Phase::update, fixed_size(16),
                               fixed_size(128), fixed_size(64))));
  const TrainingStep apart = b.lowered({.update = UpdateKernels::for_loop});
  EXPECT_THAT(works(apart), ElementsAre(work("_foreach_add", KernelKind::update, Phase::update,
                                             fixed_size(10), fixed_size(80), fixed_size(40)),
                                        work("_foreach_add", KernelKind::update, Phase::update, fixed_size(6),
                                             fixed_size(48), fixed_size(24))));
  EXPECT_EQ(apart.kernels[0].layer, 1);
  EXPECT_EQ(apart.kernels[1].layer, 2);
  EXPECT_EQ(apart.updates.size(), 2u);
}

TEST(CapturedUnknown, IsChargedByItsBytesAndListed) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(10)});
  const int y = b.tensor({growing(1), fixed_size(5)});
  TrainingStep step;
  {
    b.add("mine.fold.default", {ref(x)}, {y});
    step = b.lowered();
    b.step.operators.clear();  // the step owns the name of its kernel
  }
  EXPECT_THAT(works(step), ElementsAre(work("mine.fold", KernelKind::elementwise, Phase::forward, growing(5),
                                            growing(40), growing(20))));
  EXPECT_TRUE(step.kernels[0].unknown);
  EXPECT_THAT(step.warnings, ElementsAre(HasSubstr("mine.fold.default (1)")));
}

// An image of 2x4x4 numbers at 3x3 places of a grid, of which alone a gradient is wanted: 18 numbers of 20
// operations. It reads 18*4 + 32*4 + 18*4 = 272 B and writes the grid's 18*4.
TEST(CapturedResampling, OfAGridAloneFillsNothing) {
  StepBuilder b;
  const int dy = b.tensor({growing(1), fixed_size(2), fixed_size(3), fixed_size(3)});
  const int x = b.tensor({growing(1), fixed_size(2), fixed_size(4), fixed_size(4)});
  const int grid = b.tensor({growing(1), fixed_size(3), fixed_size(3), fixed_size(2)});
  const int dgrid = b.tensor({growing(1), fixed_size(3), fixed_size(3), fixed_size(2)});
  const TrainingStep step = b.add("aten.grid_sampler_2d_backward.default", {ref(dy), ref(x), ref(grid)},
                                  {-1, dgrid}, StepPhase::backward)
                                .lowered();
  EXPECT_THAT(works(step), ElementsAre(work("grid_sampler_2d_backward", KernelKind::elementwise,
                                            Phase::backward_data, growing(360), growing(272), growing(72))));
}

TEST(CapturedCollectives, OfOneProcessRunNothing) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(10)});
  const TrainingStep step = b.add("c10d.allreduce_.default", {list({ref(x)})}, {x})
                                .add("aten.relu_.default", {ref(x)}, {x})
                                .lowered();
  EXPECT_THAT(works(step), ElementsAre(work("relu", KernelKind::elementwise, Phase::forward, growing(10),
                                            growing(40), growing(40))));
  EXPECT_TRUE(step.warnings.empty());
}

TEST(OperatorTable, StripsNamespaceOverloadAndUnderscore) {
  EXPECT_EQ(name_in_table("aten.add_.Tensor"), "add");
  EXPECT_EQ(name_in_table("aten.__and__.Tensor"), "__and__");
  EXPECT_EQ(name_in_table("aten._foreach_mul_.Scalar"), "_foreach_mul");
  EXPECT_EQ(name_in_table("tbdsim.scaled_dot_product_attention"), "tbdsim.scaled_dot_product_attention");
  EXPECT_EQ(name_in_table("torchvision.nms.default"), "torchvision.nms");
  EXPECT_TRUE(is_in_place("aten.add_.Tensor"));
  EXPECT_FALSE(is_in_place("aten.add.Tensor"));
  EXPECT_NE(find_operator("aten.add_.Tensor"), nullptr);
  EXPECT_EQ(find_operator("aten.no_such.default"), nullptr);
}

TEST(CapturedCopies, OfTheHostGoOverTheBus) {
  StepBuilder b;
  const int images = b.tensor({growing(1), fixed_size(6)}, Dtype::f32, StorageRole::host);
  const int x = b.tensor({growing(1), fixed_size(6)});
  const int y = b.tensor({growing(1), fixed_size(6)}, Dtype::f32, StorageRole::host);
  const TrainingStep step = b.add("aten._to_copy.default", {ref(images)}, {x})
                                .add("aten._to_copy.default", {ref(x)}, {y})
                                .lowered();
  EXPECT_THAT(works(step),
              ElementsAre(work("host_to_device", KernelKind::transfer, Phase::forward, {}, {}, growing(24)),
                          work("device_to_host", KernelKind::transfer, Phase::forward, {}, growing(24), {})));
  const TrainingStep compiled = b.lowered({.compiler = Compiler::inductor});
  EXPECT_EQ(works(compiled), works(step));
}

// The host waits where a program synchronizes, and for the count of what is selected.
TEST(CapturedWaits, OfProgramsAndOfSelections) {
  StepBuilder b;
  const int x = b.tensor({growing(100)}, Dtype::boolean);
  const int places = b.tensor({growing(100), fixed_size(1)}, Dtype::i64);
  const TrainingStep step = b.add("tbdsim.synchronize", {}, {}, StepPhase::update)
                                .add("aten.nonzero.default", {ref(x)}, {places})
                                .lowered();
  ASSERT_EQ(step.kernels.size(), 4u);
  EXPECT_TRUE(is_copy_to_host(step.kernels[0]));
  EXPECT_EQ(step.kernels[1].read_bytes, growing(100));
  EXPECT_TRUE(is_copy_to_host(step.kernels[2]));
  EXPECT_EQ(step.kernels[3].written_bytes, growing(800));
  EXPECT_TRUE(step.warnings.empty());
}

}  // namespace
}  // namespace tbdsim
