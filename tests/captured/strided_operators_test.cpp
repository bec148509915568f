// Operators whose kernels depend on how their tensors lie in memory, and torchvision's suppression of boxes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graphs/captured/tensor_access.h"
#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using ::testing::ElementsAre;
using namespace test;

TEST(TensorAccess, ContiguousRowsLieInTheOrderOfDimensions) {
  StepBuilder b;
  const int x = b.tensor({fixed_size(6), growing(5)});
  const auto at = [&](int tensor) { return b.step.tensors[static_cast<std::size_t>(tensor)]; };
  EXPECT_TRUE(is_contiguous(at(x)));
  const CapturedTensor across = at(b.transposed(x));
  EXPECT_FALSE(is_contiguous(across));
  EXPECT_EQ(access_of_contiguous_copy(across), Access::across);
  CapturedTensor slice = at(x);  // rows of 5 numbers of 8
  slice.strides[0] = fixed_size(8);
  EXPECT_FALSE(is_contiguous(slice));
  EXPECT_EQ(access_of_contiguous_copy(slice), Access::elements);
}

// Rows of 5 numbers that are columns in memory: copied forward; backward again, beside a gradient that is
// not.
TEST(CapturedNorms, OfRowsApartAreCopiedFirst) {
  StepBuilder b;
  const int y = b.tensor({growing(6), fixed_size(5)});
  const int x = b.transposed(b.tensor({fixed_size(5), growing(6)}));
  const int s = b.tensor({fixed_size(5)});
  b.add("aten.native_layer_norm.default", {ref(x), list({whole(5)}), ref(s), ref(s), {1e-5}}, {y, s, s});
  b.add("aten.native_layer_norm_backward.default",
        {ref(y), ref(x), list({whole(5)}), ref(s), ref(s), ref(s), ref(s),
         list({flag(true), flag(false), flag(false)})},
        {y, s, s}, StepPhase::backward);
  const TrainingStep step = b.lowered();
  const auto copy = [](Phase phase) {
    return work("copy", KernelKind::transpose, phase, {}, growing(120), growing(120));
  };
  EXPECT_THAT(works(step), ElementsAre(copy(Phase::forward),
                                       work("layer_norm", KernelKind::layer_norm, Phase::forward,
                                            growing(240), growing(120), growing(120)),
                                       copy(Phase::backward_data),
                                       work("layer_norm", KernelKind::layer_norm, Phase::backward_data,
                                            growing(300), growing(240), growing(120))));
  EXPECT_EQ(step.kernels[0].access, Access::across);
}

TEST(CapturedJoins, LoadVectorsOfContiguousParts) {
  StepBuilder b;
  const int x = b.tensor({growing(6), fixed_size(5)});
  const int apart = b.transposed(b.tensor({fixed_size(5), growing(6)}));
  const int y = b.tensor({growing(12), fixed_size(5)});
  b.add("aten.cat.default", {list({ref(x), ref(x)})}, {y});
  b.add("aten.cat.default", {list({ref(x), ref(apart)})}, {y});
  const TrainingStep step = b.lowered();
  ASSERT_EQ(step.kernels.size(), 2u);
  EXPECT_EQ(step.kernels[0].access, Access::vectors);
  EXPECT_EQ(step.kernels[0].timed_as, std::nullopt);
  EXPECT_EQ(step.kernels[1].access, Access::elements);
  EXPECT_EQ(step.kernels[1].timed_as, KernelKind::transpose);
}

// 130 boxes: 3 words of 64 bits of a mask for each, 130 * 130 / 2 pairs of 24 operations; one thread block
// waits for the mask of one box after another.
TEST(CapturedSuppression, WalksOverBoxes) {
  StepBuilder b;
  const int boxes = b.tensor({fixed_size(130), fixed_size(4)});
  const int scores = b.tensor({fixed_size(130)});
  const int kept = b.tensor({fixed_size(50)}, Dtype::i64);
  const TrainingStep step =
      b.add("torchvision.nms.default", {ref(boxes), ref(scores), {0.7}}, {kept}).lowered();
  ASSERT_EQ(step.kernels.size(), 5u);
  const Size mask = fixed_size(130 * 3 * 8);
  EXPECT_EQ(works(step)[0], work("nms", KernelKind::elementwise, Phase::forward, fixed_size(130 * 130 * 12),
                                 fixed_size(130 * 4 * 4), mask));
  EXPECT_EQ(step.kernels[1].read_bytes, mask);
  EXPECT_TRUE(step.kernels[1].thread_per_row);
  EXPECT_EQ(std::get<MatrixShape>(step.kernels[1].shape).rows, fixed_size(130));
  EXPECT_TRUE(is_copy_to_host(step.kernels[3]));
}

// 100 regions of 7 x 7 pixels and 8 channels: 39,200 results of 2 x 2 points, of the size of the region by
// default, or 3 x 3; the gradient is added to zeros.
TEST(CapturedRegions, TakeTheirPointsTime) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8), fixed_size(20), fixed_size(20)});
  const int regions = b.tensor({fixed_size(100), fixed_size(5)});
  const int y = b.tensor({fixed_size(100), fixed_size(8), fixed_size(7), fixed_size(7)});
  for (const std::int64_t sampling : {-1, 3})
    b.add("torchvision.roi_align.default",
          {ref(x), ref(regions), {0.5}, whole(7), whole(7), whole(sampling), flag(false)}, {y});
  b.add("torchvision._roi_align_backward.default",
        {ref(y),
         ref(regions),
         {0.5},
         whole(7),
         whole(7),
         whole(1),
         whole(8),
         whole(20),
         whole(20),
         whole(2),
         flag(false)},
        {x}, StepPhase::backward);
  const TrainingStep step = b.lowered({.aten_kernels = true});
  ASSERT_EQ(step.kernels.size(), 4u);
  EXPECT_EQ(step.kernels[0].flops, fixed_size(39'200 * 21));
  EXPECT_EQ(step.kernels[1].flops, fixed_size(39'200 * (21 * 9 / 4)));
  EXPECT_EQ(step.kernels[2].op, "fill");
  EXPECT_EQ(step.kernels[3].flops, fixed_size(39'200 * 58));
  EXPECT_EQ(step.kernels[3].access, Access::elements);
}

}  // namespace
}  // namespace tbdsim
