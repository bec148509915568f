// Layers of WGAN-GP and A3C: what brings data to the device, makes images larger and smaller, ends a graph in
// a loss, and the second-order backward passes of a gradient penalty.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::make_layer;
using test::per_sample;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using enum Phase;

// 4 channels of 4x6: 96 elements, 384 B in fp32. A quarter of it is 24 elements, 96 B.
const Shape kImage = image(4, 4, 6);
constexpr std::int64_t kElements = 96;
constexpr Size kBytes{0, 384};
constexpr Size kQuarter{0, 96};

Work work(std::string_view op, KernelKind kind, Phase phase, std::int64_t flops, Size read, Size written,
          Size scratch = {}) {
  return {op, kind, phase, per_sample(flops), {}, read, written, scratch};
}

std::vector<Kernel> double_backward(const LayerBench& bench) {
  std::vector<Kernel> kernels;
  bench.layer->double_backward(bench.site(), {bench.lowering, bench.precision}, kernels);
  return kernels;
}

std::vector<std::int64_t> repeats(const std::vector<Kernel>& kernels) {
  std::vector<std::int64_t> all;
  for (const Kernel& kernel : kernels) all.push_back(kernel.repeat);
  return all;
}

// An exponential's worth of work is counted as one operation, as a relu's; dy (1 - y^2) is three.
TEST(Tanh, KeepsItsOutput) {
  const LayerBench bench{"{type: tanh}", {kImage}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("tanh", KernelKind::elementwise, forward, kElements, kBytes, kBytes)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(work("tanh", KernelKind::elementwise, backward_data,
                                                           3 * kElements, kBytes * 2, kBytes)));
  EXPECT_TRUE(bench.needs().output);
  EXPECT_FALSE(bench.needs().inputs);
}

// Each pixel four times; back their sum, an addition for each pixel of the output.
TEST(Upsample, RepeatsPixels) {
  const LayerBench bench{"{type: upsample, factor: 2}", {kImage}};
  EXPECT_EQ(bench.output, image(4, 8, 12));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("upsample", KernelKind::elementwise, forward, 0, kBytes, kBytes * 4)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(work("upsample", KernelKind::elementwise, backward_data,
                                                           4 * kElements, kBytes * 4, kBytes)));
}

// A copy in NHWC; where tensors are NCHW, a transposed copy before and after it, both alive beside it.
TEST(DepthToSpace, TransposesAroundItselfInNchw) {
  LayerBench bench{"{type: depth_to_space, factor: 2}", {kImage}};
  EXPECT_EQ(bench.output, image(1, 8, 12));
  const auto copy = [](std::string_view op, Phase phase, Size scratch) {
    return work(op, KernelKind::transpose, phase, 0, kBytes, kBytes, scratch);
  };
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(copy("nhwc_nchw", forward, {}), copy("depth_to_space", forward, kBytes * 2),
                          copy("nhwc_nchw", forward, {})));
  EXPECT_EQ(bench.backward().size(), 3u);
  bench.lowering.layout = Layout::nhwc;
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(copy("depth_to_space", backward_data, {})));
}

TEST(DepthToSpace, WantsChannelsForEveryPixel) {
  EXPECT_THAT([] { (void)LayerBench("{type: depth_to_space, factor: 3}", {kImage}); },
              ThrowsMessage<ShapeMismatch>("input has 4 channels; expected a multiple of 9"));
}

TEST(Reshape, IsFree) {
  const LayerBench bench{"{type: reshape, dims: [8, 12]}", {kImage}};
  EXPECT_EQ(bench.output, (Shape{per_sample(1), {8, 12}}));
  EXPECT_THAT(bench.forward(), IsEmpty());
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_TRUE(bench.layer->passes_gradient_through());
  EXPECT_TRUE(bench.layer->is_view({}));
  EXPECT_THAT([] { (void)LayerBench("{type: reshape, dims: [95]}", {kImage}); },
              ThrowsMessage<ShapeMismatch>("input has shape 4x4x6; expected as many elements as 95"));
}

// Four slices of a quarter each, three additions an element, a division. Back: the division, four images
// zeroed, four quarters put in, and the four images, 4 x 384 B, added up.
TEST(SliceMean, IsSlicesAndASum) {
  const LayerBench bench{"{type: slice_mean}", {kImage}};
  EXPECT_EQ(bench.output, image(4, 2, 3));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("slice", KernelKind::elementwise, forward, 0, kQuarter, kQuarter),
                          work("add_n", KernelKind::elementwise, forward, 3 * 24, kBytes, kQuarter, kBytes),
                          work("div", KernelKind::elementwise, forward, 24, kQuarter, kQuarter)));
  EXPECT_THAT(repeats(bench.forward()), ElementsAre(4, 1, 1));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(work("div", KernelKind::elementwise, backward_data, 24, kQuarter, kQuarter),
                          work("fill", KernelKind::elementwise, backward_data, 0, {}, kBytes),
                          work("slice", KernelKind::elementwise, backward_data, 0, kQuarter, kQuarter),
                          work("add_n", KernelKind::elementwise, backward_data, 3 * kElements, kBytes * 4,
                               kBytes, kBytes * 4)));
  EXPECT_THAT(repeats(bench.backward()), ElementsAre(1, 4, 4, 1));
  EXPECT_THAT([] { (void)LayerBench("{type: slice_mean}", {image(4, 3, 6)}); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("expected an even height and width")));
}

// It is linear and TensorFlow knows: forward again, and no gradient of its input.
TEST(SliceMean, IsItsOwnSecondOrder) {
  const LayerBench bench{"{type: slice_mean}", {kImage}};
  EXPECT_EQ(double_backward(bench).size(), 3u);
  EXPECT_FALSE(bench.layer->input_gradient_depends_on_input());
}

// The mean of 96 elements a sample is one number; each gets the same gradient, a fill of 384 B.
TEST(MeanLoss, FillsItsGradient) {
  const LayerBench bench{"{type: mean_loss}", {kImage}};
  EXPECT_EQ(bench.output, (Shape{fixed_size(1), {1}}));
  EXPECT_TRUE(bench.layer->is_loss());
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("mean", KernelKind::reduction, forward, kElements, kBytes, fixed_size(4))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(work("fill", KernelKind::elementwise, backward_data, 0, {}, kBytes)));
  EXPECT_THAT(double_backward(bench), IsEmpty());
}

// x and its target in, the loss or its gradient out.
TEST(SquaredLoss, ReadsATarget) {
  const LayerBench bench{"{type: squared_loss}", {test::vector(5)}};
  EXPECT_TRUE(bench.layer->is_loss());
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(work("squared_loss", KernelKind::elementwise, forward,
                                                          10, per_sample(40), per_sample(20))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(work("squared_loss", KernelKind::elementwise, backward_data, 10, per_sample(40),
                               per_sample(20))));
}

// A softmax over 6 scores, 24 B, five operations each; 14 kernels for the other terms, 19 for their
// gradients.
TEST(ActorCriticLoss, IsManySmallKernels) {
  const LayerBench bench{"{type: actor_critic_loss}", {test::vector(6), test::vector(1)}};
  EXPECT_TRUE(bench.layer->is_loss());
  const Size scores = per_sample(24);
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("softmax_loss", KernelKind::softmax, forward, 30, scores, scores),
                          work("mul", KernelKind::elementwise, forward, 6, scores, scores)));
  EXPECT_THAT(repeats(bench.forward()), ElementsAre(1, 14));
  EXPECT_THAT(repeats(bench.backward()), ElementsAre(19, 1));
  EXPECT_THAT(
      [] {
        (void)LayerBench("{type: actor_critic_loss}", {test::vector(6), test::vector(2)});
      },
      ThrowsMessage<ShapeMismatch>(HasSubstr("expected a score for each action and one value")));
}

// Bytes cross the bus once and are charged where they arrive on the device or leave it. Whatever the
// precision, elements have the size the host's have.
TEST(HostCopy, CrossesTheBusOnce) {
  LayerBench to_device{"{type: host_copy, to: device, element_bytes: 1}", {kImage}};
  to_device.precision = test::kFp16;
  EXPECT_THAT(works_of(to_device.forward()), ElementsAre(work("host_to_device", KernelKind::transfer, forward,
                                                              0, {}, per_sample(kElements))));
  EXPECT_FALSE(to_device.layer->differentiable());
  EXPECT_FALSE(to_device.layer->is_loss());
  const LayerBench to_host{"{type: host_copy, to: host}", {kImage}};
  EXPECT_THAT(works_of(to_host.forward()),
              ElementsAre(work("device_to_host", KernelKind::transfer, forward, 0, kBytes, {})));
  EXPECT_TRUE(to_host.layer->is_loss());
}

// A mask of a byte an element is sent and kept; the output and the gradient are filled where it is set.
TEST(FillPastLength, ByAMaskOfTheHost) {
  LayerBench bench{"{type: fill_past_length, host_time: 2 us}", {kImage}};
  const Size mask = per_sample(kElements);
  const auto fill = [&](Phase phase) {
    return work("masked_fill", KernelKind::elementwise, phase, kElements, kBytes + mask, kBytes);
  };
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("host_to_device", KernelKind::transfer, forward, 0, {}, mask), fill(forward)));
  EXPECT_EQ(bench.forward()[0].host_nanoseconds, per_sample(2000));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(fill(Phase::backward_data)));
  EXPECT_EQ(bench.needs().extra_bytes, mask);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), testing::IsEmpty());
}

// A byte an element becomes four; three more operations on these.
TEST(Rescale, CastsFirst) {
  const LayerBench bench{"{type: rescale, element_bytes: 1, operations: 3}", {kImage}};
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(work("cast", KernelKind::elementwise, forward, kElements, per_sample(kElements), kBytes),
                  work("rescale", KernelKind::elementwise, forward, kElements, kBytes, kBytes)));
  EXPECT_THAT(repeats(bench.forward()), ElementsAre(1, 3));
  EXPECT_EQ(LayerBench("{type: rescale, element_bytes: 4, operations: 0}", {kImage}).forward().size(), 1u);
  EXPECT_FALSE(bench.layer->differentiable());
}

// 2 rows of 8 bytes are read by 2 indices of 4 B and written before they become numbers.
TEST(Rescale, GathersRowsBefore) {
  const LayerBench bench{"{type: rescale, element_bytes: 1, operations: 0, gathered: true}",
                         {Shape{per_sample(1), {2, 8}}}};
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(work("gather", KernelKind::gather, forward, 0, per_sample(24), per_sample(16)),
                  work("cast", KernelKind::elementwise, forward, 16, per_sample(16), per_sample(64))));
  EXPECT_THROW((void)LayerBench("{type: rescale, element_bytes: 1, operations: 0, gathered: true}", {kImage}),
               ShapeMismatch);
}

// One number drawn for each sample, b - a, that times the number, and a added.
TEST(Interpolate, DrawsANumberForEachSample) {
  const LayerBench bench{"{type: interpolate}", {kImage, kImage}};
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(work("random", KernelKind::elementwise, forward, 1, {}, per_sample(4)),
                  work("sub", KernelKind::elementwise, forward, kElements, kBytes * 2, kBytes),
                  work("mul", KernelKind::elementwise, forward, kElements, kBytes + per_sample(4), kBytes),
                  work("add", KernelKind::elementwise, forward, kElements, kBytes * 2, kBytes)));
  EXPECT_THAT(
      [] {
        (void)LayerBench("{type: interpolate}", {kImage, image(4, 4, 5)});
      },
      ThrowsMessage<ShapeMismatch>("inputs have shapes 4x4x6 and 4x4x5; expected one shape"));
}

// The mask again, and zeros for the gradient of the input.
TEST(SecondOrder, OfRelu) {
  const LayerBench bench{"{type: relu}", {kImage}};
  EXPECT_THAT(works_of(double_backward(bench)),
              ElementsAre(work("relu", KernelKind::elementwise, backward_data, kElements, kBytes * 2, kBytes),
                          work("fill", KernelKind::elementwise, backward_data, 0, {}, kBytes)));
  EXPECT_TRUE(bench.layer->input_gradient_depends_on_input());
}

// dY went to both inputs, so its gradient is the sum of both.
TEST(SecondOrder, OfAnAddition) {
  const LayerBench bench{"{type: add}", {kImage, kImage}};
  EXPECT_THAT(
      works_of(double_backward(bench)),
      ElementsAre(work("add", KernelKind::elementwise, backward_data, kElements, kBytes * 2, kBytes)));
  EXPECT_FALSE(bench.layer->input_gradient_depends_on_input());
}

// torch.stack copies both before they are summed.
TEST(Add, StackedInputsAreCopiedBefore) {
  const LayerBench bench{"{type: add, stacked: true}", {kImage, kImage}};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(work("stack", KernelKind::elementwise, forward, 0, kBytes * 2, kBytes * 2),
                          work("add", KernelKind::elementwise, forward, kElements, kBytes * 2, kBytes)));
}

// A mean pools again, four pixels a window, and hands zeros on; a maximum has no second order here.
TEST(SecondOrder, OfPoolings) {
  const LayerBench mean{"{type: avg_pool, kernel: 2, stride: 2, padding: 0}", {kImage}};
  EXPECT_THAT(works_of(double_backward(mean)),
              ElementsAre(work("avg_pool", KernelKind::pooling, backward_data, kElements, kBytes, kQuarter),
                          work("fill", KernelKind::elementwise, backward_data, 0, {}, kBytes)));
  const LayerBench maximum{"{type: max_pool, kernel: 2, stride: 2, padding: 0}", {kImage}};
  EXPECT_THROW((void)double_backward(maximum), NoSecondOrder);
}

// 3 filters of 1x1 over 4 channels and 24 pixels: 288 multiply-adds, forward again and once for the weights.
TEST(SecondOrder, OfProductsIsTwice) {
  const LayerBench conv{"{type: conv2d, filters: 3, kernel: 1, padding: 0, bias: true}", {kImage}};
  const auto kernels = double_backward(conv);
  ASSERT_EQ(kernels.size(), 2u);  // the bias is no part of dX
  EXPECT_EQ(kernels[0].macs, per_sample(288));
  EXPECT_EQ(kernels[0].phase, forward);
  EXPECT_EQ(kernels[1].macs, per_sample(288));
  EXPECT_EQ(kernels[1].phase, backward_weights);
  LayerBench frozen{"{type: fully_connected, outputs: 5}", {kImage}};
  frozen.weight_gradient = false;
  ASSERT_EQ(double_backward(frozen).size(), 1u);
  EXPECT_EQ(double_backward(frozen)[0].macs, per_sample(5 * 96));
}

// Where its backward pass is differentiated PyTorch runs group normalisation in terms: 8 passes over memory
// and 20 small kernels instead of one kernel.
TEST(SecondOrder, FusedNormsComeApart) {
  const LayerBench bench{"{type: layer_norm, axes: image}", {kImage}};
  const auto backward = [&](bool differentiated) {
    LayerContext site = bench.site();
    site.differentiated = differentiated;
    std::vector<Kernel> kernels;
    bench.layer->backward(site, {bench.lowering, bench.precision}, kernels);
    std::int64_t count = 0;
    for (const Kernel& kernel : kernels) count += kernel.repeat;
    return count;
  };
  EXPECT_EQ(backward(false), 1);
  EXPECT_EQ(backward(true), 7 + 20);
}

}  // namespace
}  // namespace tbdsim
