// lstm and gru: as one library call, and unrolled into the operations of each framework.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using test::LayerBench;
using test::per_sample;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// 3 steps of 4 features, 5 units.
const Shape kSequence{per_sample(1), {3, 4}};
const Shape kState{per_sample(1), {5}};
constexpr Lowering kFused{.recurrence = Recurrence::fused};
constexpr Lowering kMxnet{.relu_keeps = ReluKeeps::input_and_output, .joins = ConcatLowering::parts};
constexpr Lowering kTensorFlow{.cell_products = CellProducts::joined,
                               .step_gradients = GradientAccumulation::added,
                               .joins = ConcatLowering::whole};
constexpr Lowering kPyTorchCells{.cell_pointwise = Composition::fused,
                                 .step_gradients = GradientAccumulation::added,
                                 .joins = ConcatLowering::views};

LayerBench bench_of(const std::string& yaml, const Lowering& lowering,
                    std::vector<Shape> inputs = {kSequence}) {
  LayerBench bench{yaml, std::move(inputs)};
  bench.lowering = lowering;
  return bench;
}

// "3 sigmoid, add": runs of equal operations. Every kernel of an unrolled cell runs once a step.
std::string ops_of(const std::vector<Kernel>& kernels) {
  std::string text;
  for (std::size_t k = 0; k < kernels.size();) {
    std::size_t end = k;
    while (end < kernels.size() && kernels[end].op == kernels[k].op) ++end;
    if (!text.empty()) text += ", ";
    if (end - k > 1) text += std::to_string(end - k) + " ";
    text += kernels[k].op;
    for (; k < end; ++k) EXPECT_EQ(kernels[k].repeat, 3) << kernels[k].op;
  }
  return text;
}

std::int64_t macs_of(const std::vector<Kernel>& kernels) {
  Size macs;
  for (const Kernel& kernel : kernels) macs += kernel.macs * kernel.repeat;
  EXPECT_EQ(macs.fixed, 0);
  return macs.per_sample;
}

TEST(LstmCall, OfSeveralLayersIsNotAlone) {
  const auto is_alone = [](const std::string& keys) {
    const std::vector<Kernel> kernels = bench_of("{type: lstm, hidden: 5" + keys + "}", kFused).forward();
    return std::get<RecurrentShape>(kernels.at(0).shape).alone;
  };
  EXPECT_TRUE(is_alone(""));
  EXPECT_FALSE(is_alone(", alone: false"));
}

// 4 gates x 5 units x (4 features + 5 units) x 3 steps = 540 multiply-adds in each phase. Bytes of a sample:
// x 3 x 4 x 4 = 48, y 3 x 5 x 4 = 60, gates 3 x 20 x 4 = 240, kept by the library 5 x y = 300; of the
// weights: input 20 x 4 x 4 = 320, state 20 x 5 x 4 = 400, the latter read at each of 3 steps: 1520 in all.
//   forward: reads x, the gates' sums, c and h (48 + 240 + 2 x 60 = 408); writes sums, kept and y (600).
//   by data: reads dy, kept, gradients of gates, dc and dh (60 + 300 + 240 + 120 = 720); writes those of
//   gates
//            and dx (288).
//   by weights: reads x, y and twice the gradients of gates (588); writes 320 + 400.
// Scratch memory: weights (720), 8 MiB, and 4 x 3 + 6 vectors of 5 numbers of a sample (360).
TEST(LstmCall, OneKernelForEachPhase) {
  const LayerBench bench = bench_of("{type: lstm, hidden: 5}", kFused);
  EXPECT_EQ(bench.output, (Shape{per_sample(1), {3, 5}}));
  const auto call = [](Phase phase, Size read, Size written) {
    return Work{"lstm",  KernelKind::recurrent, phase, per_sample(1080), per_sample(540), read,
                written, {8'389'328, 360}};
  };
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(call(Phase::forward, {1520, 408}, {0, 600})));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(call(Phase::backward_data, {1520, 720}, {0, 288}),
                                                      call(Phase::backward_weights, {0, 588}, {720, 0})));
  EXPECT_EQ(std::get<RecurrentShape>(bench.forward()[0].shape),
            (RecurrentShape{.batch = per_sample(1), .steps = 3, .inputs = 4, .hidden = 5, .gates = 4}));
  EXPECT_EQ(bench.forward()[0].repeat, 1);
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(300));
}

TEST(LstmCall, FrozenWeightsGetNoGradient) {
  LayerBench bench = bench_of("{type: lstm, hidden: 5}", kFused);
  bench.weight_gradient = false;
  EXPECT_EQ(bench.backward().size(), 1u);
}

// A decoder that waits for what its own step made, or one that the model says so of, is no call.
TEST(LstmCall, NotWhereStepsWait) {
  EXPECT_EQ(bench_of("{type: lstm, hidden: 5, recurrence: cells}", kFused).forward()[0].repeat, 3);
  EXPECT_EQ(bench_of("{type: lstm, hidden: 5, feed: 2}", kFused).forward()[0].repeat, 3);
  EXPECT_EQ(bench_of("{type: lstm, hidden: 5, recurrence: fused}", kMxnet).forward()[0].repeat, 1);
}

// One matrix over [x, h] and one bias: 20 x 9 and 20. Apart: 20 x 4, 20 x 5 and a bias each; two more
// features are fed in the third.
TEST(Lstm, Parameters) {
  const std::vector<Shape> inputs{kSequence};
  const auto sizes = [&](const std::string& yaml) {
    std::vector<std::int64_t> elements;
    for (const ParameterTensor& tensor : test::make_layer(yaml)->parameters(inputs)) {
      EXPECT_TRUE(tensor.trained && tensor.cast) << tensor.name;
      elements.push_back(tensor.elements);
    }
    return elements;
  };
  EXPECT_THAT(sizes("{type: lstm, hidden: 5, biases: 1}"), ElementsAre(180, 20));
  EXPECT_THAT(sizes("{type: lstm, hidden: 5}"), ElementsAre(80, 100, 20, 20));
  EXPECT_THAT(sizes("{type: lstm, hidden: 5, feed: 2}"), ElementsAre(120, 100, 20, 20));
}

// MXNet 0.11 rnn_cell.py LSTMCell and its gradient; the counts of an iteration are those of a profile
// (recurrent_models_test.cpp).
TEST(LstmCell, MxnetRunsEachOperator) {
  const LayerBench bench = bench_of("{type: lstm, hidden: 5}", kMxnet);
  EXPECT_EQ(
      ops_of(bench.forward()),
      "matmul, bias_add, matmul, bias_add, add, 4 split, 3 sigmoid, tanh, 2 multiply, add, tanh, multiply");
  EXPECT_EQ(ops_of(bench.backward()),
            "add, 2 multiply, tanh, add, 4 multiply, tanh, 3 sigmoid, 4 split, 2 bias_gradient, "
            "4 matmul");
  EXPECT_EQ(macs_of(bench.forward()), 540);
  EXPECT_EQ(macs_of(bench.backward()), 2 * 540);
}

// TensorFlow 1.3 BasicLSTMCell: the list of its operations, with a constant added to the forget gate.
TEST(LstmCell, TensorFlowJoinsInputAndState) {
  const LayerBench bench = bench_of("{type: lstm, hidden: 5, biases: 1, forget_bias: true}", kTensorFlow);
  EXPECT_EQ(ops_of(bench.forward()),
            "concat, matmul, bias_add, split, add, 3 sigmoid, tanh, 2 multiply, add, tanh, multiply");
  EXPECT_EQ(ops_of(bench.backward()),
            "add, 2 multiply, tanh, add, 4 multiply, tanh, 3 sigmoid, split, bias_gradient, "
            "accumulate, matmul, accumulate, matmul, 2 concat");
  EXPECT_EQ(macs_of(bench.forward()), 540);
  EXPECT_EQ(macs_of(bench.backward()), 2 * 540);
}

// PyTorch LSTMCell: two products and one kernel; one sum serves both biases.
TEST(LstmCell, PyTorchFusesTheRest) {
  const LayerBench bench = bench_of("{type: lstm, hidden: 5, recurrence: cells}", kPyTorchCells);
  EXPECT_EQ(ops_of(bench.forward()), "2 matmul, lstm_cell");
  EXPECT_EQ(ops_of(bench.backward()),
            "add, lstm_cell, bias_gradient, 2 accumulate, matmul, accumulate, 2 matmul, accumulate, "
            "matmul");
  EXPECT_EQ(macs_of(bench.backward()), 2 * 540);
}

// 2 of the 6 features are fed: a copy joins them; back, two slices and the sum with what else read them.
TEST(LstmCell, FeedIsJoinedToTheInput) {
  const LayerBench bench = bench_of("{type: lstm, hidden: 5, feed: 2}", kMxnet);
  const auto forward = bench.forward();
  EXPECT_EQ(forward[0].op, "concat");
  EXPECT_EQ(forward[1].op, "concat");
  EXPECT_EQ(forward[0].read_bytes + forward[1].read_bytes, per_sample((4 + 2) * 4));
  EXPECT_EQ(macs_of(forward), 3 * 20 * (6 + 5));
  EXPECT_THAT(ops_of(bench.backward()), HasSubstr("4 matmul, 2 concat, add"));
}

// The fed part needs its gradient although the input does not.
TEST(LstmCell, FirstLayerNeedsNoInputGradient) {
  LayerBench plain = bench_of("{type: lstm, hidden: 5}", kMxnet);
  plain.input_gradient = false;
  EXPECT_EQ(macs_of(plain.backward()), 2 * 540 - 3 * 20 * 4);
  LayerBench fed = bench_of("{type: lstm, hidden: 5, feed: 2}", kMxnet);
  fed.input_gradient = false;
  EXPECT_EQ(macs_of(fed.backward()), 2 * 3 * 20 * (6 + 5));
}

// A padded step keeps c and h: a select each, and a branch of each select back.
TEST(LstmCell, MaskedStepsSelect) {
  const LayerBench bench = bench_of("{type: lstm, hidden: 5, masked: true}", kTensorFlow);
  EXPECT_THAT(ops_of(bench.forward()), HasSubstr("multiply, 2 select"));
  EXPECT_THAT(ops_of(bench.backward()), HasSubstr("add, 4 select"));
}

// The gradient of the 20 x 4 input weights: each step's product of 4 and 20 numbers a sample (96 B) adds to
// the 320 B that are there, in place or by a kernel that reads both.
TEST(LstmCell, StepsAddToTheWeightsGradient) {
  const auto weights_of = [](const LayerBench& bench) {
    std::vector<Work> works;
    for (const Work& work : works_of(bench.backward())) {
      if (work.phase == Phase::backward_weights && (work.read.fixed >= 320 || work.written.fixed == 320))
        works.push_back(work);
    }
    return works;
  };
  const Work product{"matmul",
                     KernelKind::gemm,
                     Phase::backward_weights,
                     per_sample(160),
                     per_sample(80),
                     {320, 96},
                     {320, 0},
                     {}};
  EXPECT_EQ(weights_of(bench_of("{type: lstm, hidden: 5}", kMxnet))[0], product);
  const auto added = weights_of(bench_of("{type: lstm, hidden: 5}", kPyTorchCells));
  EXPECT_EQ(added[0].read, per_sample(96));
  EXPECT_EQ(added[1].op, "accumulate");
  EXPECT_EQ(added[1].read, fixed_size(2 * 320));
  EXPECT_EQ(added[1].written, fixed_size(320));
}

// Vectors of 5 units (20 B) kept of each of 3 steps. MXNet keeps gates before and after activation, c and
// tanh(c): 10. TensorFlow the gates once, c, tanh(c) and the joined [x, h] of 9: 6 x 5 + 9 numbers, and then
// needs neither x nor h. PyTorch's kernel makes tanh(c) again: 5.
TEST(LstmCell, Keeps) {
  const BackwardNeeds mxnet = bench_of("{type: lstm, hidden: 5}", kMxnet).needs();
  EXPECT_EQ(mxnet.extra_bytes, per_sample(3 * 10 * 20));
  EXPECT_TRUE(mxnet.inputs && mxnet.output);
  const BackwardNeeds tensorflow = bench_of("{type: lstm, hidden: 5}", kTensorFlow).needs();
  EXPECT_EQ(tensorflow.extra_bytes, per_sample(3 * (6 * 20 + 36)));
  EXPECT_FALSE(tensorflow.inputs || tensorflow.output);
  EXPECT_EQ(bench_of("{type: lstm, hidden: 5}", kPyTorchCells).needs().extra_bytes, per_sample(3 * 5 * 20));
}

TEST(Lstm, TakesStatesAndRefusesOtherShapes) {
  EXPECT_EQ(bench_of("{type: lstm, hidden: 5}", kMxnet, {kSequence, kState, kState}).output.dims,
            (std::vector<std::int64_t>{3, 5}));
  const auto layer = test::make_layer("{type: lstm, hidden: 5}");
  const auto refuses = [&](const std::vector<Shape>& inputs, const std::string& what) {
    EXPECT_THAT([&] { (void)layer->output_shape(inputs); }, ThrowsMessage<ShapeMismatch>(HasSubstr(what)));
  };
  refuses({test::vector(4)}, "expected steps x features");
  refuses({kSequence, test::vector(4)}, "input has shape 4; expected 5, a state of the layer");
  refuses({kSequence, kState, kState, kState}, "has 4 inputs; expected 1 to 3");
}

// 3 gates of 5 units: 3 x 15 x (4 + 5) = 405 multiply-adds; r, z, n, U h and another kept of each step.
// Scratch memory: 15 x 9 weights of 4 bytes (540), 8 MiB, and 2 x 3 + 1 vectors of a sample (140).
TEST(GruCall, OneKernelForEachPhase) {
  const LayerBench bench = bench_of("{type: gru, hidden: 5}", kFused);
  ASSERT_EQ(bench.forward().size(), 1u);
  EXPECT_EQ(bench.forward()[0].op, "gru");
  EXPECT_EQ(bench.backward().size(), 2u);
  EXPECT_EQ(macs_of(bench.forward()), 405);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(3 * 5 * 20));
  EXPECT_EQ(bench.forward()[0].scratch_bytes, (Size{8'389'148, 140}));
}

TEST(GruCell, Operations) {
  const LayerBench mxnet = bench_of("{type: gru, hidden: 5}", kMxnet);
  EXPECT_EQ(ops_of(mxnet.forward()),
            "matmul, bias_add, matmul, bias_add, 6 split, add, sigmoid, add, sigmoid, multiply, add, tanh, "
            "subtract, "
            "multiply, add");
  EXPECT_EQ(macs_of(mxnet.forward()), 405);
  EXPECT_EQ(macs_of(mxnet.backward()), 2 * 405);
  const LayerBench pytorch = bench_of("{type: gru, hidden: 5, recurrence: cells}", kPyTorchCells);
  EXPECT_EQ(ops_of(pytorch.forward()), "2 matmul, gru_cell");
  EXPECT_EQ(macs_of(pytorch.backward()), 2 * 405);
}

// MXNet's stt_layer_gru.py after the product and norm of the gates' input: U h of two gates (50 products),
// W x (20) and U (r h) (25) of the third, 95 a step. It is no library's GRU.
TEST(GruCell, GivenGates) {
  const Shape gates{per_sample(1), {3, 10}};
  LayerBench bench = bench_of("{type: gru, hidden: 5, gates: given}", kMxnet, {kSequence, gates});
  EXPECT_EQ(
      ops_of(bench.forward()),
      "matmul, bias_add, add, 2 split, 2 sigmoid, matmul, bias_add, multiply, matmul, bias_add, add, tanh, "
      "subtract, multiply, add");
  EXPECT_EQ(ops_of(bench.backward()),
            "add, 2 multiply, negate, tanh, bias_gradient, 2 matmul, 2 multiply, bias_gradient, 2 matmul, "
            "2 sigmoid, 2 split, bias_gradient, 2 matmul");
  EXPECT_EQ(macs_of(bench.forward()), 3 * 95);
  EXPECT_EQ(macs_of(bench.backward()), 2 * 3 * 95);
  // Three gates before and after activation, n - h and r h.
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(3 * 8 * 20));
  EXPECT_FALSE(bench.needs().inputs);  // the layer that gives the gates keeps x
  std::int64_t parameters = 0;
  for (const ParameterTensor& tensor : bench.layer->parameters(bench.inputs)) parameters += tensor.elements;
  EXPECT_EQ(parameters, 95 + 10 + 5 + 5);
  bench.lowering = kFused;
  EXPECT_EQ(bench.forward()[0].repeat, 3);
  const std::vector<Shape> narrow{kSequence, kSequence};
  EXPECT_THAT(
      [&] { (void)bench.layer->output_shape(narrow); },
      ThrowsMessage<ShapeMismatch>(HasSubstr("gates have shape 3x4; expected two of 5 for each step")));
}

TEST(Gru, RefusesWhatOnlyAnLstmHas) {
  EXPECT_THAT([] { (void)test::make_layer("{type: gru, hidden: 5, biases: 1, gates: given}"); },
              ThrowsMessage<SpecError>(HasSubstr("biases: is 1; expected 2")));
  EXPECT_THAT([] { (void)test::make_layer("{type: gru, hidden: 5, feed: 2}"); },
              ThrowsMessage<SpecError>(HasSubstr("feed: is of an lstm")));
}

// Halves of fp16 storage, tensor-core arithmetic where the precision has it.
TEST(Recurrent, PrecisionSetsStorageAndArithmetic) {
  LayerBench bench = bench_of("{type: lstm, hidden: 5}", kFused);
  bench.precision = test::kFp16;
  EXPECT_EQ(bench.forward()[0].math, MathType::fp16);
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(300));
  bench.lowering = kMxnet;
  EXPECT_EQ(bench.forward()[0].math, MathType::fp16);
  EXPECT_EQ(bench.forward()[1].math, MathType::fp32);
}

}  // namespace
}  // namespace tbdsim
