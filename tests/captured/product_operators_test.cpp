// Work of the kernels that matrix products and attention become, derived by hand.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Precision kAmp = kPrecisions[5];

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

// cuDNN's LSTM of 6 units over a packed sequence of 8 features: 3 steps with two samples for each of the
// batch; 12 steps in all for a batch of two. Its shape is that of the padded sequence of as many steps, and
// it is not alone, nor are two layers or directions: no persistent kernel computes them.
TEST(CapturedProducts, OfPackedSequences) {
  const auto lowered = [](std::vector<Size> input, const Argument& samples, std::int64_t layers = 1,
                          bool both_directions = false) {
    StepBuilder b;
    const int x = b.tensor(std::move(input));
    const int weight = b.tensor({fixed_size(24), fixed_size(8)});
    b.add("aten._cudnn_rnn.default",
          {ref(x),
           list({ref(weight)}),
           whole(4),
           none(),
           ref(x),
           ref(x),
           whole(2),
           whole(6),
           whole(0),
           whole(layers),
           flag(false),
           {0.0},
           flag(true),
           flag(both_directions),
           samples,
           none()},
          {x});
    return std::get<RecurrentShape>(b.lowered().kernels.at(0).shape);
  };
  const RecurrentShape padded = lowered({fixed_size(3), growing(2), fixed_size(8)}, list({}));
  EXPECT_EQ(padded, (RecurrentShape{.batch = growing(2), .steps = 3, .inputs = 8, .hidden = 6, .gates = 4}));
  EXPECT_FALSE(lowered({fixed_size(3), growing(2), fixed_size(8)}, list({}), 2).alone);
  EXPECT_FALSE(lowered({fixed_size(3), growing(2), fixed_size(8)}, list({}), 1, true).alone);
  const Argument two{growing(2)};
  RecurrentShape packed = padded;
  packed.alone = false;
  EXPECT_EQ(lowered({growing(6), fixed_size(8)}, list({two, two, two})), packed);
  EXPECT_THROW(lowered({growing(6), fixed_size(8)}, list({})), ModelError);
  // Of two samples one has four steps and one two: six rows are three steps of both. Two rows of each of 40
  // steps' sequences where the list has 50 are 40 steps; 7 rows of 2 samples are rounded up.
  const Argument one{growing(1)};
  EXPECT_EQ(lowered({growing(6), fixed_size(8)}, list({two, two, one, one})), packed);
  RecurrentShape longer = packed;
  longer.batch = growing(1);
  longer.steps = 40;
  EXPECT_EQ(lowered({growing(40), fixed_size(8)}, list(std::vector<Argument>(50, one))), longer);
  longer.batch = growing(2);
  longer.steps = 4;
  EXPECT_EQ(lowered({growing(7), fixed_size(8)}, list({two, two, two, one})), longer);
  EXPECT_THROW(lowered({growing(6), fixed_size(8)}, list({whole(0)})), ModelError);
}

// Each of 8 heads a sample multiplies 16 x 4 numbers by a vector: bytes, of which one kernel sums. An outer
// product is a matrix product.
TEST(CapturedProducts, WithVectorsReadTheMatrixOnce) {
  StepBuilder b;
  const int matrix = b.tensor({growing(8), fixed_size(16), fixed_size(4)});
  const int vector = b.tensor({growing(8), fixed_size(4), fixed_size(1)});
  const int sums = b.tensor({growing(8), fixed_size(16), fixed_size(1)});
  const int row = b.tensor({growing(8), fixed_size(1), fixed_size(4)});
  b.add("aten.bmm.default", {ref(matrix), ref(vector)}, {sums});
  b.add("aten.bmm.default", {ref(sums), ref(row)}, {matrix});
  const TrainingStep step = b.lowered();
  EXPECT_THAT(works(step),
              ElementsAre(work("matmul", KernelKind::reduction, Phase::forward, growing(2 * 8 * 64),
                               growing(8 * (64 + 4) * 4), growing(8 * 16 * 4)),
                          work("matmul", KernelKind::gemm, Phase::forward, growing(2 * 8 * 64),
                               growing(8 * (16 + 4) * 4), growing(8 * 64 * 4))));
  EXPECT_EQ(step.kernels[0].macs, growing(8 * 64));
  EXPECT_EQ(step.kernels[0].access, Access::across);
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

// 8 experts share 16 rows a sample: the mean one multiplies 2 rows a sample by 5 x 3 weights; its weights'
// gradient sums these rows.
TEST(CapturedProducts, OfAMixturesExperts) {
  StepBuilder b;
  const int x = b.tensor({growing(16), fixed_size(5)});
  const int w = b.tensor({fixed_size(8), fixed_size(5), fixed_size(3)});
  const int y = b.tensor({growing(16), fixed_size(3)});
  const int dw = b.tensor({fixed_size(8), fixed_size(5), fixed_size(3)});
  b.add("aten._grouped_mm.default", {ref(x), ref(w), none()}, {y});
  b.add("aten._grouped_mm.default", {ref(b.transposed(x)), ref(y), none()}, {dw}, StepPhase::backward);
  const TrainingStep step = b.lowered();
  ASSERT_EQ(step.kernels.size(), 2u);
  EXPECT_EQ(
      std::get<GemmShape>(step.kernels[0].shape),
      (GemmShape{
          .m = fixed_size(3), .n = growing(2), .k = fixed_size(5), .batch = fixed_size(8), .grouped = true}));
  EXPECT_EQ(step.kernels[0].macs, growing(16 * 15));
  EXPECT_EQ(std::get<GemmShape>(step.kernels[1].shape).k, growing(2));
  EXPECT_EQ(step.kernels[1].macs, growing(16 * 15));
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

// The memory-efficient kernel of fp32 has the gradient times the result summed before it: 192 numbers to 24.
TEST_F(CapturedAttention, SumsGradientsBeforeItInFp32) {
  for (CapturedTensor& tensor : builder_.step.tensors) tensor.dtype = Dtype::f32;
  const auto kernels = works(builder_.lowered());
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[1], work("mul", KernelKind::elementwise, Phase::backward_data, growing(192),
                             growing(1536), growing(768)));
  EXPECT_EQ(kernels[2], work("sum", KernelKind::reduction, Phase::backward_data, growing(192), growing(768),
                             growing(96)));
}

// Two of the four heads of queries share one of keys and values.
TEST_F(CapturedAttention, KnowsSharedHeads) {
  for (const int tensor : {1, 2})
    builder_.step.tensors[static_cast<std::size_t>(tensors_[tensor])].shape[1] = fixed_size(2);
  for (const Kernel& kernel : builder_.lowered({}, kAmp).kernels)
    EXPECT_EQ(std::get<AttentionShape>(kernel.shape).queries_per_key, 2);
}

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

// An LSTM's cell of 6 units: 24 gates and a state of 6 numbers of 4 B a sample, of which 30 FLOP each are
// charged to the gates; two biases of 24. Backward the gates' gradients are summed once over the samples.
TEST(CapturedRecurrent, ACellOfAnLstmIsOneKernelAndASum) {
  for (const bool compiled : {false, true}) {
    StepBuilder b;
    const auto gates = [&] { return b.tensor({growing(1), fixed_size(24)}); };
    const auto state = [&] { return b.tensor({growing(1), fixed_size(6)}); };
    const int bias = b.tensor({fixed_size(24)}), c = state(), next = state(), kept = gates();
    b.add("aten._thnn_fused_lstm_cell.default", {ref(gates()), ref(gates()), ref(c), ref(bias), ref(bias)},
          {state(), next, kept});
    b.add("aten._thnn_fused_lstm_cell_backward_impl.default",
          {ref(state()), ref(state()), ref(c), ref(next), ref(kept), flag(true)},
          {gates(), state(), b.tensor({fixed_size(24)})}, StepPhase::backward);
    const TrainingStep step = b.lowered(compiled ? Lowering{.compiler = Compiler::inductor} : Lowering{});
    constexpr std::string_view kForward = "_thnn_fused_lstm_cell";
    // Forward: 2 x 24 gates, 6 of the state, 24 of the one bias; 2 x 6 of states and 24 kept are written.
    // Backward: 4 states and what was kept are read; 24 gradients of gates and 6 of the state are written.
    const Size forward_read{.fixed = 96, .per_sample = 216};
    EXPECT_THAT(works(step),
                ElementsAre(work(std::string(kForward), KernelKind::elementwise, Phase::forward, growing(720),
                                 forward_read, growing(144)),
                            work(std::string(kForward) + "_backward_impl", KernelKind::elementwise,
                                 Phase::backward_data, growing(720), growing(192), growing(120)),
                            work("sum", KernelKind::reduction, Phase::backward_data, growing(24), growing(96),
                                 fixed_size(96))))
        << compiled;
    EXPECT_EQ(std::get<MatrixShape>(step.kernels.back().shape), (MatrixShape{growing(1), 24}));
  }
}

// A GRU's cell of 6 units: 18 gates a sample, and 30 numbers kept. The gradients of its two biases differ.
TEST(CapturedRecurrent, ACellOfAGruSumsTheGradientsOfBothBiases) {
  StepBuilder b;
  const auto tensor = [&](std::int64_t numbers) { return b.tensor({growing(1), fixed_size(numbers)}); };
  const auto bias = [&] { return b.tensor({fixed_size(18)}); };
  b.add("aten._thnn_fused_gru_cell_backward.default", {ref(tensor(6)), ref(tensor(30)), flag(true)},
        {tensor(18), tensor(18), tensor(6), bias(), bias()}, StepPhase::backward);
  const Work sum =
      work("sum", KernelKind::reduction, Phase::backward_data, growing(18), growing(72), fixed_size(72));
  EXPECT_THAT(works(b.lowered()),
              ElementsAre(work("_thnn_fused_gru_cell_backward", KernelKind::elementwise, Phase::backward_data,
                               growing(540), growing(144), growing(168)),
                          sum, sum));
}

}  // namespace
}  // namespace tbdsim
