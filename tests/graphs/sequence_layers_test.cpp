// Layers that move sequences, activations, and what the host waits for.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::per_sample;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// 3 steps of 4 features: 12 elements, 48 B in fp32, 16 B a step.
const Shape kSequence{per_sample(1), {3, 4}};

Work moving(std::string_view op, KernelKind kind, Phase phase, std::int64_t read, std::int64_t written) {
  return {op, kind, phase, {}, {}, per_sample(read), per_sample(written), {}};
}

// Bytes written in all, and how many kernels did.
std::pair<std::int64_t, std::int64_t> copies(const std::vector<Kernel>& kernels) {
  std::pair<std::int64_t, std::int64_t> sum;
  for (const Kernel& kernel : kernels) {
    sum.first += kernel.written_bytes.per_sample * kernel.repeat;
    sum.second += kernel.repeat;
  }
  return sum;
}

using Copies = std::pair<std::int64_t, std::int64_t>;

// Apart: a kernel for each of 3 steps, unless they are views. Together: one kernel, or one for each step.
TEST(Steps, ApartAndTogether) {
  const auto both = [](const std::string& yaml, ConcatLowering joins) {
    LayerBench bench{yaml, {kSequence}};
    bench.lowering.joins = joins;
    EXPECT_EQ(bench.output, kSequence);
    return std::pair(copies(bench.forward()), copies(bench.backward()));
  };
  EXPECT_EQ(both("{type: unstack}", ConcatLowering::parts), std::pair(Copies(48, 3), Copies(48, 3)));
  EXPECT_EQ(both("{type: unstack}", ConcatLowering::whole), std::pair(Copies(48, 3), Copies(48, 1)));
  EXPECT_EQ(both("{type: unstack}", ConcatLowering::views), std::pair(Copies(0, 0), Copies(48, 1)));
  EXPECT_EQ(both("{type: stack}", ConcatLowering::parts), std::pair(Copies(48, 3), Copies(48, 3)));
  EXPECT_EQ(both("{type: stack}", ConcatLowering::whole), std::pair(Copies(48, 1), Copies(48, 3)));
  EXPECT_EQ(both("{type: stack}", ConcatLowering::views), std::pair(Copies(48, 1), Copies(0, 0)));
}

TEST(Steps, ViewsAreTheirInput) {
  Lowering lowering;
  EXPECT_FALSE(test::make_layer("{type: unstack}")->is_view(lowering));
  lowering.joins = ConcatLowering::views;
  EXPECT_TRUE(test::make_layer("{type: unstack}")->is_view(lowering));
  EXPECT_FALSE(test::make_layer("{type: unstack}")->gradient_is_view(lowering));
  EXPECT_FALSE(test::make_layer("{type: stack}")->is_view(lowering));
  EXPECT_TRUE(test::make_layer("{type: stack}")->gradient_is_view(lowering));
  EXPECT_TRUE(test::make_layer("{type: concat}")->gradient_is_view(lowering));
}

// 4 and 2 features of 3 steps: 18 numbers, 72 B.
TEST(Concat, AlongTheLastDimension) {
  LayerBench bench{"{type: concat, axis: last}", {kSequence, {per_sample(1), {3, 2}}}};
  EXPECT_EQ(bench.output, (Shape{per_sample(1), {3, 6}}));
  EXPECT_EQ(copies(bench.forward()), Copies(72, 1));
  EXPECT_EQ(copies(bench.backward()), Copies(72, 2));
  bench.lowering.joins = ConcatLowering::parts;
  EXPECT_EQ(copies(bench.forward()), Copies(72, 2));
  bench.lowering.joins = ConcatLowering::views;
  EXPECT_THAT(bench.backward(), IsEmpty());
  const std::vector<Shape> steps{kSequence, {per_sample(1), {2, 4}}};
  EXPECT_THAT([&] { (void)bench.layer->output_shape(steps); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("differ in the last dimension only")));
}

TEST(SequenceReverse, OneCopyEachWay) {
  const auto op = [](const std::string& yaml) {
    const LayerBench bench{yaml, {kSequence}};
    EXPECT_EQ(std::get<MatrixShape>(bench.forward()[0].shape), (MatrixShape{per_sample(4), 3}));
    EXPECT_EQ(copies(bench.backward()), Copies(48, 1));
    return std::string(bench.forward()[0].op);
  };
  EXPECT_EQ(op("{type: sequence_reverse}"), "sequence_reverse");
  EXPECT_EQ(op("{type: sequence_reverse, parallel: true}"), "parallel_sequence_reverse");
  EXPECT_EQ(op("{type: sequence_reverse, lengths: false}"), "flip");
  EXPECT_EQ(op("{type: sequence_reverse, lengths: false, parallel: false}"), "flip");
  EXPECT_THAT(
      [&] { (void)op("{type: sequence_reverse, lengths: false, parallel: true}"); },
      ThrowsMessage<SpecError>(HasSubstr("parallel: is true with 'lengths: false'; expected one of both")));
}

// One step of 16 B is read and written; back, 48 B of zeros and the step.
TEST(SequenceLast, OneStep) {
  const LayerBench bench{"{type: sequence_last}", {kSequence}};
  EXPECT_EQ(bench.output, test::vector(4));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("sequence_last", KernelKind::gather, Phase::forward, 16, 16)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("fill", KernelKind::elementwise, Phase::backward_data, 0, 48),
                          moving("sequence_last", KernelKind::gather, Phase::backward_data, 16, 16)));
}

// 2 channels of 3 times and 5 frequencies: 3 steps of 10 features, 120 B. Channels last, a step is together.
TEST(FoldTime, CopiesUnlessChannelsAreLast) {
  LayerBench bench{"{type: fold_time}", {image(2, 3, 5)}};
  EXPECT_EQ(bench.output, (Shape{per_sample(1), {3, 10}}));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("transpose", KernelKind::transpose, Phase::forward, 120, 120)));
  EXPECT_EQ(copies(bench.backward()), Copies(120, 1));
  bench.lowering.layout = Layout::nhwc;
  EXPECT_THAT(bench.forward(), IsEmpty());
  EXPECT_TRUE(bench.layer->is_view(bench.lowering));
  EXPECT_TRUE(bench.layer->gradient_is_view(bench.lowering));
}

TEST(SequenceLayers, WantASequence) {
  for (const char* yaml : {"{type: unstack}", "{type: sequence_reverse}", "{type: sequence_last}"}) {
    const std::vector<Shape> flat{test::vector(4)};
    const auto layer = test::make_layer(yaml);
    EXPECT_THAT([&] { (void)layer->output_shape(flat); },
                ThrowsMessage<ShapeMismatch>(HasSubstr("expected steps x features")));
  }
}

// Back, y and dy are read (96 B), and x where the framework keeps it.
TEST(Activation, TanhAndSigmoid) {
  for (const char* type : {"tanh", "sigmoid"}) {
    LayerBench bench{std::string("{type: ") + type + "}", {kSequence}};
    EXPECT_EQ(bench.forward()[0].op, type);
    EXPECT_EQ(bench.forward()[0].flops, per_sample(12));
    EXPECT_EQ(bench.backward()[0].read_bytes, per_sample(96));
    EXPECT_TRUE(bench.needs().output);
    EXPECT_FALSE(bench.needs().inputs);
    bench.lowering.relu_keeps = ReluKeeps::input_and_output;
    EXPECT_EQ(bench.backward()[0].read_bytes, per_sample(144));
    EXPECT_TRUE(bench.needs().inputs);
  }
}

// 7 steps of 3 scores (84 B) against 2 labels: 5 states a step, 35 in all, 140 B. The labels (8 B) go to the
// host; alpha reads and writes the states; beta reads them and the probabilities and writes the gradient.
TEST(CtcLoss, RecursionOverTheStates) {
  const LayerBench bench{"{type: ctc_loss, labels: 2}", {{per_sample(1), {7, 3}}}};
  const auto recursion = [](std::string_view op, Phase phase, std::int64_t read, std::int64_t written) {
    return Work{
        op, KernelKind::reduction, phase, per_sample(13 * 35), {}, per_sample(read), per_sample(written), {}};
  };
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("device_to_host", KernelKind::transfer, Phase::forward, 8, 0),
                          Work{"softmax",
                               KernelKind::softmax,
                               Phase::forward,
                               per_sample(5 * 21),
                               {},
                               per_sample(84),
                               per_sample(84),
                               {}},
                          recursion("ctc_alpha", Phase::forward, 140, 140)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(recursion("ctc_beta", Phase::backward_data, 140 + 84, 84)));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(140));
  EXPECT_TRUE(bench.layer->is_loss());
}

// The mean over 3 positions of each sample: 12 B are summed and 4 B copied, for any batch.
TEST(ReadBack, OneNumber) {
  const LayerBench bench{"{type: read_back}", {kSequence}};
  EXPECT_EQ(elements(bench.output), fixed_size(1));
  ASSERT_EQ(bench.forward().size(), 2u);
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(12));
  EXPECT_EQ(bench.forward()[1].kind, KernelKind::transfer);
  EXPECT_EQ(bench.forward()[1].read_bytes, fixed_size(4));
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.layer->differentiable());
  EXPECT_TRUE(bench.layer->is_loss());
}

// Without pixels the features are the channels, and positions count as rows: as pixels would.
TEST(BatchNorm, OfFeatures) {
  const LayerBench vectors{"{type: batch_norm}", {test::vector(4)}};
  EXPECT_EQ(std::get<ImageShape>(vectors.forward()[0].shape), (ImageShape{per_sample(1), 4, 1, 1}));
  const LayerBench positions{"{type: batch_norm}", {kSequence}};
  EXPECT_EQ(std::get<ImageShape>(positions.forward()[0].shape), (ImageShape{per_sample(3), 4, 1, 1}));
  EXPECT_EQ(positions.layer->parameters(positions.inputs)[0].elements, 4);
}

}  // namespace
}  // namespace tbdsim
