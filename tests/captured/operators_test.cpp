// Work of the kernels that each family of operators becomes, derived by hand.
#include <gmock/gmock.h>

#include "graphs/captured/operator_table.h"
#include "hwspecs/base/error.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Precision kAmp = kPrecisions[4];

// Kind, phase, operations, bytes read and written.
struct Work {
  std::string op;
  KernelKind kind;
  Phase phase;
  Size flops, read, written;
  friend bool operator==(const Work&, const Work&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Work& w) {
    return out << w.op << " " << name_of(w.kind) << " " << name_of(w.phase) << " flops " << w.flops.fixed
               << "+" << w.flops.per_sample << "b read " << w.read.fixed << "+" << w.read.per_sample
               << "b written " << w.written.fixed << "+" << w.written.per_sample << "b";
  }
};

std::vector<Work> works(const TrainingStep& step) {
  std::vector<Work> all;
  for (const Kernel& k : step.kernels)
    all.push_back({std::string(k.op), k.kind, k.phase, k.flops, k.read_bytes, k.written_bytes});
  return all;
}

Work work(std::string op, KernelKind kind, Phase phase, Size flops, Size read, Size written) {
  return {std::move(op), kind, phase, flops, read, written};
}

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

// Y = X * W' of 7 rows a sample, 5 inputs and 3 outputs: by columns m = 3, n = 7 a sample, k = 5, W as it is
// stored, transposed.
TEST(CapturedProducts, OfALinearLayer) {
  StepBuilder b;
  const int x = b.tensor({growing(7), fixed_size(5)});
  const int w = b.tensor({fixed_size(3), fixed_size(5)});
  const int y = b.tensor({growing(7), fixed_size(3)});
  const TrainingStep step = b.add("aten.mm.default", {ref(x), ref(b.transposed(w))}, {y}).lowered();
  EXPECT_THAT(works(step), ElementsAre(work("matmul", KernelKind::gemm, Phase::forward, growing(2 * 7 * 15),
                                            {60, 140}, growing(84))));
  const auto& shape = std::get<GemmShape>(step.kernels[0].shape);
  EXPECT_EQ(shape, (GemmShape{.m = fixed_size(3), .n = growing(7), .k = fixed_size(5), .transpose_a = true}));
}

TEST(CapturedProducts, AddABiasInTheProductOrBeforeIt) {
  StepBuilder b;
  const int bias = b.tensor({fixed_size(3)});
  const int x = b.tensor({growing(1), fixed_size(5)});
  const int w = b.tensor({fixed_size(5), fixed_size(3)});
  const int y = b.tensor({growing(1), fixed_size(3)});
  b.add("aten.addmm.default", {ref(bias), ref(x), ref(w), whole(1), whole(1)}, {y});
  EXPECT_EQ(b.lowered().kernels.size(), 1u);
  const TrainingStep apart = b.lowered({.product_bias = Composition::composite});
  ASSERT_EQ(apart.kernels.size(), 2u);
  EXPECT_EQ(apart.kernels[0].op, "bias_add");
  EXPECT_EQ(apart.kernels[0].written_bytes, growing(12));
}

TEST(CapturedProducts, OfBatchesThatGrow) {
  StepBuilder b;
  const int q = b.tensor({growing(8), fixed_size(16), fixed_size(4)});
  const int k = b.tensor({growing(8), fixed_size(4), fixed_size(9)});
  const int s = b.tensor({growing(8), fixed_size(16), fixed_size(9)});
  const TrainingStep step = b.add("aten.bmm.default", {ref(q), ref(k)}, {s}).lowered();
  EXPECT_EQ(std::get<GemmShape>(step.kernels[0].shape).batch, growing(8));
  EXPECT_EQ(step.kernels[0].macs, growing(8 * 16 * 9 * 4));
}

TEST(CapturedProducts, RefuseWorkThatGrowsWithTheSquareOfTheBatch) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(4)});
  const int y = b.tensor({growing(1), fixed_size(4)});
  const int s = b.tensor({growing(1)});
  b.step.tensors[static_cast<std::size_t>(s)].shape = {growing(1), growing(1)};
  b.step.tensors[static_cast<std::size_t>(s)].strides = {growing(1), fixed_size(1)};
  b.add("aten.mm.default", {ref(x), ref(b.transposed(y))}, {s}, StepPhase::forward, 2);
  b.step.tensors[static_cast<std::size_t>(s)].elements = growing(1);
  // k = 4 is fixed, so that the product of m and n is what grows twice: the reader refuses such a tensor.
  EXPECT_NO_THROW((void)b.lowered());
  b.step.operators[0].arguments = {ref(b.transposed(x)), ref(y)};  // k grows, and so does what it writes
  try {
    (void)b.lowered();
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_THAT(error.what(), HasSubstr("module 'a.b'"));
    EXPECT_THAT(error.what(), HasSubstr("square of the batch"));
  }
}

// 4 heads of a sample, 6 queries and keys of 8 features: 144 scores. Products: 2 * 144 * 8 multiply-adds.
class CapturedAttention : public testing::Test {
 protected:
  CapturedAttention() {
    const std::vector<Size> shape{growing(1), fixed_size(4), fixed_size(6), fixed_size(8)};
    for (int& tensor : tensors_) tensor = builder_.tensor(shape, Dtype::f16);
    const auto [q, k, v, y, dy, dq, dk, dv] = std::to_array(tensors_);
    builder_.add("tbdsim.scaled_dot_product_attention",
                 {ref(q), ref(k), ref(v), none(), whole(0), flag(false), none()}, {y});
    builder_.add("tbdsim.scaled_dot_product_attention_backward",
                 {ref(dy), ref(q), ref(k), ref(v), ref(y), none(), whole(0), flag(false), none()},
                 {dq, dk, dv}, StepPhase::backward);
  }
  StepBuilder builder_;
  int tensors_[8] = {};
};

TEST_F(CapturedAttention, IsOneKernelOrOneForEachTerm) {
  const TrainingStep fused = builder_.lowered({}, kAmp);
  ASSERT_EQ(fused.kernels.size(), 2u);
  EXPECT_EQ(fused.kernels[0].macs, growing(2 * 144 * 8));
  EXPECT_EQ(fused.kernels[1].macs, growing(5 * 144 * 8));
  EXPECT_EQ(fused.kernels[0].read_bytes, growing(3 * 192 * 2));
  EXPECT_EQ(fused.kernels[0].written_bytes, growing(192 * 2));

  const TrainingStep apart = builder_.lowered({.attention = AttentionKernels::math}, kAmp);
  std::vector<std::string> ops;
  for (const Kernel& kernel : apart.kernels) ops.emplace_back(kernel.op);
  EXPECT_THAT(ops, ElementsAre("matmul", "mul", "softmax", "matmul",  //
                               "matmul", "matmul", "softmax", "mul", "matmul", "matmul"));
  Size macs;
  for (const Kernel& kernel : apart.kernels) macs += kernel.macs;
  EXPECT_EQ(macs, growing(6 * 144 * 8));
  // The probabilities live from the forward to the backward pass.
  const Tensor& kept = apart.tensors.back();
  EXPECT_EQ(kept.bytes, growing(144 * 2));
  EXPECT_EQ(kept.first_use, 3);
  EXPECT_EQ(kept.last_use, 9);
}

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
  // x: 512 B; y: 128 B; places: 256 B. 9 comparisons an output; in the backward pass 4 inputs for each.
  EXPECT_THAT(works(b.lowered()),
              ElementsAre(work("max_pool2d_with_indices", KernelKind::pooling, Phase::forward, growing(288),
                               growing(512), growing(384)),
                          work("max_pool2d_with_indices_backward", KernelKind::pooling, Phase::backward_data,
                               growing(128), growing(384), growing(512))));
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
  EXPECT_EQ(step.kernels[1].kind, KernelKind::transpose);
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

}  // namespace
}  // namespace tbdsim
