// Work of the kernels that convolutions of a captured step become, derived by hand.
#include <gmock/gmock.h>

#include "graphs/captured/operator_table.h"
#include "hwspecs/base/error.h"
#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Precision kAmp = kPrecisions[5];

// Arguments of a convolution behind its bias: stride, padding, dilation, transposed, output padding, groups.
std::vector<Argument> convolution(int x, int w, Argument bias, std::int64_t stride, std::int64_t padding,
                                  std::int64_t dilation, bool transposed, std::int64_t groups) {
  return {ref(x),
          ref(w),
          std::move(bias),
          pair(stride, stride),
          pair(padding, padding),
          pair(dilation, dilation),
          flag(transposed),
          pair(0, 0),
          whole(groups)};
}

// 8 channels of 10x12 in 4 groups, 16 filters of 3x3, padding 2, dilation 2: 10x12 out. An image has
// 16*120 = 1920 outputs of 2*9 = 18 multiply-adds: 34560, flops 69120. Input 8*120*4 = 3840 B, output 7680 B,
// weights 16*18*4 = 1152 B.
TEST(CapturedConvolution, HasGroupsAndDilation) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8), fixed_size(10), fixed_size(12)});
  const int w = b.tensor({fixed_size(16), fixed_size(2), fixed_size(3), fixed_size(3)});
  const int bias = b.tensor({fixed_size(16)});
  const int y = b.tensor({growing(1), fixed_size(16), fixed_size(10), fixed_size(12)});
  const TrainingStep step =
      b.add("aten.convolution.default", convolution(x, w, ref(bias), 1, 2, 2, false, 4), {y}).lowered();
  EXPECT_THAT(works(step), ElementsAre(work("conv", KernelKind::convolution, Phase::forward, growing(69120),
                                            {1152, 3840}, growing(7680)),
                                       work("bias_add", KernelKind::elementwise, Phase::forward,
                                            growing(1920), growing(7680), growing(7680))));
  EXPECT_EQ(step.kernels[0].macs, growing(34560));
  const auto& shape = std::get<ConvShape>(step.kernels[0].shape);
  EXPECT_EQ(shape.groups, 4);
  EXPECT_EQ(shape.dilation_height, 2);
  EXPECT_EQ(shape.pad_width, 2);
  EXPECT_EQ(shape.channels, 8);
  EXPECT_EQ(shape.filters, 16);
}

// Gradients of gradients: 2 filters of 3x3, stride 2, padding 1 on images of 3x5x5 give 2x3x3. Their weights'
// gradient is a convolution with samples for channels, stride and dilation changed. An image has 18 outputs
// of 27 multiply-adds: 486, flops 972; it reads 75*4 + 18*4 = 372 B, the weights' gradient has 54*4 = 216 B.
TEST(CapturedConvolution, WithGradientIsThePassOfTheWeights) {
  StepBuilder b;
  const int x = b.tensor({fixed_size(3), growing(1), fixed_size(5), fixed_size(5)});
  const int dy = b.tensor({fixed_size(2), growing(1), fixed_size(3), fixed_size(3)});
  const int dw = b.tensor({fixed_size(3), fixed_size(2), fixed_size(3), fixed_size(3)});
  const TrainingStep step = b.add("aten.convolution.default", convolution(x, dy, none(), 1, 1, 2, false, 1),
                                  {dw}, StepPhase::backward)
                                .lowered();
  EXPECT_THAT(works(step), ElementsAre(work("conv", KernelKind::convolution, Phase::backward_weights,
                                            growing(972), growing(372), fixed_size(216))));
  const auto& shape = std::get<ConvShape>(step.kernels[0].shape);
  EXPECT_EQ(shape.images, growing(1));
  EXPECT_EQ(shape.channels, 3);
  EXPECT_EQ(shape.filters, 2);
  EXPECT_EQ(shape.stride_width, 2);
  EXPECT_EQ(shape.dilation_width, 1);
}

// The mask asks for the gradients of the weight and the bias, not of the input.
TEST(CapturedConvolution, BackwardFollowsItsMask) {
  StepBuilder b;
  const int dy = b.tensor({growing(1), fixed_size(4), fixed_size(5), fixed_size(5)});
  const int x = b.tensor({growing(1), fixed_size(3), fixed_size(5), fixed_size(5)});
  const int w = b.tensor({fixed_size(4), fixed_size(3), fixed_size(1), fixed_size(1)});
  const int dw = b.tensor({fixed_size(4), fixed_size(3), fixed_size(1), fixed_size(1)});
  const int db = b.tensor({fixed_size(4)});
  b.add("aten.convolution_backward.default",
        {ref(dy), ref(x), ref(w), list({whole(4)}), pair(1, 1), pair(0, 0), pair(1, 1), flag(false),
         pair(0, 0), whole(1), list({flag(false), flag(true), flag(true)})},
        {-1, dw, db}, StepPhase::backward);
  // 100 outputs of an image of 3 multiply-adds; input 300 B, output 400 B, weights 48 B.
  EXPECT_THAT(works(b.lowered()),
              ElementsAre(work("bias_gradient", KernelKind::reduction, Phase::backward_weights, growing(100),
                               growing(400), fixed_size(16)),
                          work("conv", KernelKind::convolution, Phase::backward_weights, growing(600),
                               growing(700), fixed_size(48))));
}

// In half precision tensor cores convolve NHWC images: NCHW ones are copied.
TEST(CapturedConvolution, CopiesImagesForTensorCoresUnlessTheyLieSo) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8), fixed_size(4), fixed_size(4)}, Dtype::f16);
  const int w = b.tensor({fixed_size(8), fixed_size(8), fixed_size(1), fixed_size(1)}, Dtype::f16);
  const int y = b.tensor({growing(1), fixed_size(8), fixed_size(4), fixed_size(4)}, Dtype::f16);
  b.add("aten.convolution.default", convolution(x, w, none(), 1, 0, 1, false, 1), {y});
  const Lowering lowering{.tensor_core_layout = Layout::nhwc};
  const TrainingStep nchw = b.lowered(lowering, kAmp);
  ASSERT_EQ(nchw.kernels.size(), 2u);
  EXPECT_EQ(nchw.kernels[0].op, "nhwc_nchw");
  EXPECT_EQ(nchw.kernels[0].read_bytes, growing(256));
  EXPECT_EQ(nchw.kernels[1].math, MathType::fp16);
  for (const int tensor : {x, y}) {
    auto& strides = b.step.tensors[static_cast<std::size_t>(tensor)].strides;
    strides = {fixed_size(128), fixed_size(1), fixed_size(32), fixed_size(8)};
  }
  EXPECT_EQ(b.lowered(lowering, kAmp).kernels.size(), 1u);
}

// 3 frames of 4x4 with 2 channels, 5 filters of 3x3x3 without padding in depth: one frame out. An image has
// 5*4*4 = 80 outputs of 2*27 = 54 multiply-adds.
TEST(CapturedConvolution, FoldsDepthIntoChannels) {
  StepBuilder b;
  const auto triple = [](std::int64_t a, std::int64_t c, std::int64_t d) {
    return list({whole(a), whole(c), whole(d)});
  };
  const int x = b.tensor({growing(1), fixed_size(2), fixed_size(3), fixed_size(4), fixed_size(4)});
  const int w = b.tensor({fixed_size(5), fixed_size(2), fixed_size(3), fixed_size(3), fixed_size(3)});
  const int y = b.tensor({growing(1), fixed_size(5), fixed_size(1), fixed_size(4), fixed_size(4)});
  b.add("aten.convolution.default",
        {ref(x), ref(w), none(), triple(1, 1, 1), triple(0, 1, 1), triple(1, 1, 1), flag(false),
         triple(0, 0, 0), whole(1)},
        {y});
  const TrainingStep step = b.lowered();
  EXPECT_EQ(step.kernels[0].macs, growing(80 * 54));
  const auto& shape = std::get<ConvShape>(step.kernels[0].shape);
  EXPECT_EQ(shape.channels, 6);
  EXPECT_EQ(shape.images, growing(1));
  EXPECT_EQ(shape.kernel_height, 3);
}

// A sequence of 20 with 4 channels, 6 filters of 5, stride 2, padding 2: 10 out.
TEST(CapturedConvolution, OfSequencesHasRowsOfHeightOne) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(4), fixed_size(20)});
  const int w = b.tensor({fixed_size(6), fixed_size(4), fixed_size(5)});
  const int y = b.tensor({growing(1), fixed_size(6), fixed_size(10)});
  b.add("aten.convolution.default",
        {ref(x), ref(w), none(), list({whole(2)}), list({whole(2)}), list({whole(1)}), flag(false),
         list({whole(0)}), whole(1)},
        {y});
  const TrainingStep step = b.lowered();
  const auto& shape = std::get<ConvShape>(step.kernels[0].shape);
  EXPECT_EQ(shape.height, 1);
  EXPECT_EQ(shape.kernel_height, 1);
  EXPECT_EQ(shape.stride_height, 1);
  EXPECT_EQ(shape.kernel_width, 5);
  EXPECT_EQ(shape.stride_width, 2);
  EXPECT_EQ(step.kernels[0].macs, growing(6 * 10 * 20));
}

// 2 channels of 4x4, 3 filters of 3x3, stride 2, padding 1, output padding 1: 8x8 out. The data pass of the
// convolution of 3 channels of 8x8 to 2 of 4x4; 16 inputs of 2 channels meet 27 weights each.
TEST(CapturedConvolution, TransposedIsTheDataPassOfAnother) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(2), fixed_size(4), fixed_size(4)});
  const int w = b.tensor({fixed_size(2), fixed_size(3), fixed_size(3), fixed_size(3)});
  const int y = b.tensor({growing(1), fixed_size(3), fixed_size(8), fixed_size(8)});
  b.add("aten.convolution.default", convolution(x, w, none(), 2, 1, 1, true, 1), {y});
  const TrainingStep step = b.lowered();
  EXPECT_EQ(step.kernels[0].macs, growing(32 * 27));
  EXPECT_EQ(step.kernels[0].written_bytes, growing(768));
  const auto& shape = std::get<ConvShape>(step.kernels[0].shape);
  EXPECT_TRUE(shape.transposed);
  EXPECT_EQ(shape.channels, 3);
  EXPECT_EQ(shape.height, 8);
  EXPECT_EQ(shape.filters, 2);
  EXPECT_EQ(shape.out_height, 4);
}

// PyTorch's own depthwise kernel adds the bias; cuDNN's does not.
TEST(CapturedConvolution, OfOneChannelAGroupMayBeTheFrameworks) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8), fixed_size(4), fixed_size(4)});
  const int w = b.tensor({fixed_size(8), fixed_size(1), fixed_size(3), fixed_size(3)});
  const int bias = b.tensor({fixed_size(8)});
  b.add("aten.convolution.default", convolution(x, w, ref(bias), 1, 1, 1, false, 8), {x});
  const TrainingStep own = b.lowered({.depthwise = DepthwiseKernels::own});
  ASSERT_EQ(own.kernels.size(), 1u);
  EXPECT_TRUE(std::get<ConvShape>(own.kernels[0].shape).framework_kernel);
  EXPECT_EQ(b.lowered({.depthwise = DepthwiseKernels::library}).kernels.size(), 2u);
}

TEST(CapturedConvolution, RefusesGroupsThatDoNotDivide) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8), fixed_size(4), fixed_size(4)});
  const int w = b.tensor({fixed_size(8), fixed_size(2), fixed_size(1), fixed_size(1)});
  b.add("aten.convolution.default", convolution(x, w, none(), 1, 0, 1, false, 3), {x});
  try {
    (void)b.lowered();
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_THAT(error.what(), HasSubstr("operators[0].arguments[8] of aten.convolution.default"));
  }
}

}  // namespace
}  // namespace tbdsim
