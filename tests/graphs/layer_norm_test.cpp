// Layer normalisation.
#include <gmock/gmock.h>

#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::moving;
using test::per_sample;
using test::Traffic;
using test::traffic_of;
using test::Work;
using test::works_of;
using testing::ElementsAre;

// 6 positions of 10 features: 60 elements, 240 B in fp32.
const Shape kSequence{per_sample(1), {6, 10}};
constexpr std::int64_t kElements = 60;
constexpr Size kBytes{0, 240};

// A position's features stay on the chip: x is read once and y written; backward reads x and dy for dx, and
// once more for the gradients of gamma and beta. Operations on an element: 8, 10 and 5 (see layer_norm.cpp).
// Kept: x, and mean and deviation of 6 positions, 48 B.
TEST(LayerNorm, FusedOverFeatures) {
  LayerBench bench{"{type: layer_norm}", {kSequence}};
  EXPECT_EQ(bench.output, kSequence);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("layer_norm", KernelKind::layer_norm,
                                                            Phase::forward, 8 * kElements, kBytes, kBytes)));
  const Work weights =
      moving("layer_norm", KernelKind::layer_norm, Phase::backward_weights, 5 * kElements, kBytes * 2, {});
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("layer_norm", KernelKind::layer_norm, Phase::backward_data, 10 * kElements,
                                 kBytes * 2, kBytes),
                          weights));
  EXPECT_EQ(std::get<MatrixShape>(bench.forward()[0].shape), (MatrixShape{per_sample(6), 10}));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(48));
  bench.input_gradient = false;
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(weights));
}

// PyTorch 1.10 finds mean and variance in a kernel of its own, which reads x once more: 4 of the 8
// operations.
TEST(LayerNorm, MomentsApart) {
  LayerBench bench{"{type: layer_norm}", {kSequence}};
  bench.lowering.moments_apart = true;
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(
          moving("layer_norm", KernelKind::layer_norm, Phase::forward, 4 * kElements, kBytes, {}),
          moving("layer_norm", KernelKind::layer_norm, Phase::forward, 4 * kElements, kBytes, kBytes)));
}

// A gamma and a beta for each feature, or for each channel of an image; norms are never cast.
TEST(LayerNorm, Parameters) {
  const std::vector<Shape> sequence{kSequence};
  const std::vector<Shape> picture{image(5, 4, 6)};
  const auto of_features = test::make_layer("{type: layer_norm}")->parameters(sequence);
  const auto of_image = test::make_layer("{type: layer_norm, axes: image}")->parameters(picture);
  ASSERT_EQ(of_features.size(), 2u);
  ASSERT_EQ(of_image.size(), 2u);
  EXPECT_EQ(of_features[0].elements, 10);
  EXPECT_EQ(of_features[1].elements, 10);
  EXPECT_EQ(of_image[0].elements, 5);
  EXPECT_EQ(of_image[1].elements, 5);
  EXPECT_FALSE(of_features[0].cast);
}

// y = ((x - mean) rsqrt(mean((x - mean)^2) + eps)) gamma + beta in TensorFlow's Python: the two means read
// 240 B, difference, square and three products or sums read and write 240 B each; each mean writes 6
// statistics of 4 B; epsilon and rsqrt read and write these. In all 7 x 240 + 2 x 24 B read and 5 x 240 + 4 x
// 24 B written by 9 kernels, six times what the fused one moves.
TEST(LayerNorm, CompositeOverFeaturesForward) {
  LayerBench bench{"{type: layer_norm}", {kSequence}};
  bench.lowering.layer_norm = Composition::composite;
  const std::vector<Kernel> kernels = bench.forward();
  EXPECT_EQ(works_of(kernels)[0], (Work{"mean",
                                        KernelKind::reduction,
                                        Phase::forward,
                                        per_sample(60),
                                        {},
                                        kBytes,
                                        per_sample(24),
                                        kBytes}));
  EXPECT_EQ(
      works_of(kernels)[1],
      (Work{"sub", KernelKind::elementwise, Phase::forward, per_sample(60), {}, kBytes, kBytes, kBytes}));
  EXPECT_EQ(traffic_of(kernels), (Traffic{9, per_sample(7 * 240 + 2 * 24), per_sample(5 * 240 + 4 * 24)}));
}

// By the weights: sum of dy (1 read), product of dy and the normalised x (2 reads, 1 write), its sum (1
// read). By the input, reads / writes: dy gamma 1/1; times rsqrt 1/1; times x - mean 2/1 and its sum 1/0; of
// the variance tile 0/1 and division 1/1; 2 (x - mean) 1/1 times that 2/1; both differences' gradients
// negated 1/1 and summed 1/0; of the mean tile 0/1 and division 1/1; the sum of three 3/1. In all 17/12, and
// statistics read by two tiles and two kernels of their own, written by three sums and these two. Kept
// instead of x: x - mean and the normalised x.
TEST(LayerNorm, CompositeOverFeaturesBackward) {
  LayerBench bench{"{type: layer_norm}", {kSequence}};
  bench.lowering.layer_norm = Composition::composite;
  bench.input_gradient = false;
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{3, per_sample(4 * 240), per_sample(240 + 2 * 24)}));
  bench.input_gradient = true;
  bench.weight_gradient = false;
  EXPECT_EQ(traffic_of(bench.backward()),
            (Traffic{17, per_sample(17 * 240 + 4 * 24), per_sample(12 * 240 + 5 * 24)}));
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(2 * 240 + 48));
}

// 5 channels of 4x6 pixels: 480 B, read for the moments, one number a thread, and again for y; backward x and
// dy twice each.
TEST(LayerNorm, FusedOverAnImage) {
  LayerBench bench{"{type: layer_norm, axes: image}", {image(5, 4, 6)}};
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(moving("group_norm", KernelKind::reduction, Phase::forward, 4 * 120, per_sample(480), {}),
                  moving("group_norm", KernelKind::layer_norm, Phase::forward, 4 * 120, per_sample(480),
                         per_sample(480))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("group_norm", KernelKind::layer_norm, Phase::backward_data, 15 * 120,
                                 per_sample(4 * 480), per_sample(480))));
  EXPECT_EQ(std::get<MatrixShape>(bench.forward()[0].shape), (MatrixShape{fixed_size(1), 512}));
  EXPECT_EQ(std::get<MatrixShape>(bench.forward()[1].shape), (MatrixShape{per_sample(1), 120}));
  bench.input_gradient = false;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("group_norm", KernelKind::layer_norm, Phase::backward_weights, 5 * 120,
                                 per_sample(960), {})));
}

// Means, squared difference, product and sum: 5 reads and 3 writes of 480 B; 5 statistics (a row's channels)
// of 4 B written by two means and five kernels, read by these five. Backward 14 reads, 10 writes; three sums
// write statistics, two tiles read them, 12 kernels do both.
TEST(LayerNorm, CompositeOverAnImage) {
  LayerBench bench{"{type: layer_norm, axes: image}", {image(5, 4, 6)}};
  bench.lowering.layer_norm = Composition::composite;
  EXPECT_EQ(traffic_of(bench.forward()),
            (Traffic{10, per_sample(5 * 480 + 5 * 20), per_sample(3 * 480 + 7 * 20)}));
  EXPECT_EQ(traffic_of(bench.backward()),
            (Traffic{24, per_sample(14 * 480 + (2 + 12) * 20), per_sample(10 * 480 + (2 + 12) * 20)}));
  EXPECT_TRUE(bench.needs().inputs);
}

// In a gradient penalty: TensorFlow's gradients of the backward terms read 22 tensors and write 13; what
// PyTorch 1.13 runs was traced, 23 and 14.
TEST(LayerNorm, SecondOrderOfAnImage) {
  LayerBench bench{"{type: layer_norm, axes: image}", {image(5, 4, 6)}};
  const auto double_backward = [&] {
    std::vector<Kernel> kernels;
    bench.layer->double_backward(bench.site(), {bench.lowering, bench.precision}, kernels);
    return traffic_of(kernels);
  };
  EXPECT_TRUE(bench.layer->input_gradient_depends_on_input());
  EXPECT_EQ(double_backward(),
            (Traffic{18 + 45, per_sample(23 * 480 + (1 + 45) * 20), per_sample(14 * 480 + (4 + 45) * 20)}));
  bench.lowering.layer_norm = Composition::composite;
  EXPECT_EQ(double_backward(),
            (Traffic{16 + 20, per_sample(22 * 480 + (2 + 20) * 20), per_sample(13 * 480 + (3 + 20) * 20)}));
}

TEST(LayerNorm, NoSecondOrderOverFeatures) {
  const LayerBench bench{"{type: layer_norm}", {kSequence}};
  std::vector<Kernel> kernels;
  EXPECT_THROW(bench.layer->double_backward(bench.site(), {bench.lowering, bench.precision}, kernels),
               NoSecondOrder);
}

}  // namespace
}  // namespace tbdsim
