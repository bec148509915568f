// Layers that imported networks need: parts, pads, reductions, sums of tensors that spread, trained tensors.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "tests/graphs/work_fixture.h"
#include "tests/hwspecs/message_of.h"

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

constexpr KernelKind kEach = KernelKind::elementwise, kSum = KernelKind::reduction;
constexpr Phase kForward = Phase::forward, kData = Phase::backward_data, kWeights = Phase::backward_weights;

// 6 x 4 x 5: 120 numbers, 480 B in fp32.
const Shape kImage = image(6, 4, 5);

// 2 of 6 channels: 40 numbers, 160 B. The gradient is 480 B of zeros in which those are copied.
TEST(Slice, IsAViewWhoseGradientLiesInZeros) {
  const LayerBench bench{"{type: slice, dims: [2, 4, 5]}", {kImage}};
  EXPECT_EQ(bench.output, image(2, 4, 5));
  EXPECT_THAT(bench.forward(), IsEmpty());
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(Work{"fill", kEach, kData, {}, {}, {}, per_sample(480), {}},
                          Work{"slice", kEach, kData, {}, {}, per_sample(160), per_sample(160), {}}));
  EXPECT_THROW((LayerBench{"{type: slice, dims: [7, 4, 5]}", {kImage}}), ShapeMismatch);
}

// One of 5 equal parts: the graph puts the gradients of all side by side.
TEST(Slice, EqualPartsHaveNoGradientOfTheirOwn) {
  const LayerBench bench{"{type: slice, dims: [6, 4, 1], parts: 5}", {kImage}};
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_EQ(bench.layer->parts(), 5);
}

// 8 x 4 x 5: 640 B, zeros first, then the 480 B of the input.
TEST(Pad, WritesZerosAndCopies) {
  const LayerBench bench{"{type: pad, dims: [8, 4, 5]}", {kImage}};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(Work{"fill", kEach, kForward, {}, {}, {}, per_sample(640), {}},
                          Work{"pad", kEach, kForward, {}, {}, per_sample(480), per_sample(480), {}}));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(Work{"pad", kEach, kData, {}, {}, per_sample(480), per_sample(480), {}}));
}

// The mean over 20 pixels: 6 numbers, 24 B; its gradient is divided and spread.
TEST(Reduce, ReadsAllAndWritesWhatIsLeft) {
  const LayerBench mean{"{type: reduce, dims: [6]}", {kImage}};
  EXPECT_THAT(
      works_of(mean.forward()),
      ElementsAre(Work{"reduce", kSum, kForward, per_sample(120), {}, per_sample(480), per_sample(24), {}}));
  EXPECT_THAT(works_of(mean.backward()),
              ElementsAre(Work{"reduce", kEach, kData, {}, {}, per_sample(24), per_sample(480), {}}));
  const LayerBench sum{"{type: reduce, dims: [6], operation: sum}", {kImage}};
  EXPECT_THAT(sum.backward(), IsEmpty());
}

// 6 x 4 x 5 plus 6 x 1 x 5 (30 numbers, 120 B), whose gradient is a sum over the 4 rows.
TEST(Pairwise, SumsTheGradientOfWhatSpread) {
  const LayerBench bench{"{type: pairwise, operation: add}", {kImage, image(6, 1, 5)}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(Work{"add", kEach, kForward, per_sample(120), {}, per_sample(600), per_sample(480), {}}));
  EXPECT_THAT(
      works_of(bench.backward()),
      ElementsAre(
          Work{"sum", kSum, kData, per_sample(120), {}, per_sample(480), per_sample(120), per_sample(480)}));
  EXPECT_THROW((LayerBench{"{type: pairwise, operation: add}", {kImage, image(6, 2, 5)}}), ShapeMismatch);
}

// Times a trained 4 x 5 (20 numbers, 80 B, whatever the batch): dx = w dy; dw = the sum over samples of x dy.
TEST(Pairwise, ATrainedTensorIsReadOnceForAllSamples) {
  const LayerBench bench{"{type: pairwise, operation: multiply, trained: [1, 4, 5]}", {kImage}};
  ASSERT_EQ(bench.layer->parameters(bench.inputs).size(), 1U);
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 20);
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(Work{"mul", kEach, kForward, per_sample(120), {}, Size{80, 480}, per_sample(480), {}}));
  EXPECT_THAT(
      works_of(bench.backward()),
      ElementsAre(
          Work{"mul", kEach, kData, per_sample(120), {}, Size{80, 480}, per_sample(480), {}},
          Work{"mul", kEach, kWeights, per_sample(120), {}, per_sample(960), per_sample(480), {}},
          Work{"sum", kSum, kWeights, per_sample(120), {}, per_sample(480), Size{80, 0}, per_sample(480)}));
}

// A table of 7 numbers from which 120 are made.
TEST(Pairwise, ATrainedTensorMayBeMadeOfASmallerOne) {
  const LayerBench bench{"{type: pairwise, operation: add, trained: [6, 4, 5], elements: 7}", {kImage}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 7);
}

// 3 numbers for each sample, of which the gradient is a sum over samples: 12 B.
TEST(Trained, IsTheSameForAllSamples) {
  const LayerBench bench{"{type: trained, dims: [3], elements: 3}", {kImage}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 3);
  EXPECT_THAT(bench.forward(), IsEmpty());
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(Work{"sum", kSum, kWeights, per_sample(3), {}, per_sample(12), Size{12, 0}, {}}));
}

TEST(Pointwise, KeepsItsInput) {
  const LayerBench bench{"{type: pointwise}", {kImage}};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(Work{
                  "pointwise", kEach, kForward, per_sample(120), {}, per_sample(480), per_sample(480), {}}));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(Work{
                  "pointwise", kEach, kData, per_sample(120), {}, per_sample(960), per_sample(480), {}}));
}

TEST(Upsample, ToAGivenSize) {
  const LayerBench bench{"{type: upsample, outputs: [7, 9], mode: bilinear}", {kImage}};
  EXPECT_EQ(bench.output, image(6, 7, 9));
}

TEST(Upsample, SaysHowManyNumbersWereFound) {
  EXPECT_THAT(
      test::message_of<SpecError>([] { (void)test::make_layer("{type: upsample, outputs: [7, 9, 3]}"); }),
      HasSubstr("has 3 numbers; expected 2, a height and a width"));
}

}  // namespace
}  // namespace tbdsim
