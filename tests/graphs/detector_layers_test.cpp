// Layers of object detectors: norms by constant statistics, anchors, proposals, targets, regions.
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
using testing::StrEq;
using testing::ThrowsMessage;

// 5 channels of 4x6: 120 elements, 480 B in fp32.
const Shape kImage = image(5, 4, 6);
constexpr Size kBytes{0, 480};

// `rows` rows of `numbers` for each image.
Shape rows(std::int64_t count, std::int64_t numbers) { return {per_sample(count), {numbers}}; }

Work moving(std::string_view op, KernelKind kind, Phase phase, std::int64_t flops, Size read, Size written) {
  return {op, kind, phase, per_sample(flops), {}, read, written, {}};
}
Work forward(std::string_view op, KernelKind kind, std::int64_t flops, std::int64_t read,
             std::int64_t written) {
  return moving(op, kind, Phase::forward, flops, per_sample(read), per_sample(written));
}
Work to_host(Size bytes) {
  return {"device_to_host", KernelKind::transfer, Phase::forward, {}, {}, bytes, {}, {}};
}
Work to_device(Size bytes) {
  return {"host_to_device", KernelKind::transfer, Phase::forward, {}, {}, {}, bytes, {}};
}

std::vector<std::int64_t> repeats_of(const std::vector<Kernel>& kernels) {
  std::vector<std::int64_t> repeats;
  for (const Kernel& kernel : kernels) repeats.push_back(kernel.repeat);
  return repeats;
}

// y = scale x + shift: a product and a sum an element, x read and y written once. dx = scale dy: one product.
TEST(GlobalBatchNorm, ElementWiseWhereNothingIsTrained) {
  LayerBench bench{"{type: batch_norm, statistics: global}", {kImage}};
  bench.weight_gradient = false;
  EXPECT_EQ(bench.output, kImage);
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 3u);  // gamma, beta, statistics
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("affine_norm", KernelKind::elementwise,
                                                            Phase::forward, 240, kBytes, kBytes)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(moving("affine_norm", KernelKind::elementwise,
                                                             Phase::backward_data, 120, kBytes, kBytes)));
  EXPECT_TRUE(bench.needs().inputs);
}

// The sums of dy (1 operation) and dy * normalised x (4) read x and dy, then dx reads dy again. MXNet's
// kernel makes them in any case.
TEST(GlobalBatchNorm, SumsForTrainedParameters) {
  LayerBench bench{"{type: batch_norm, statistics: global}", {kImage}};
  const auto sums = ElementsAre(
      moving("affine_norm", KernelKind::batch_norm, Phase::backward_data, 6 * 120, kBytes * 3, kBytes));
  EXPECT_THAT(works_of(bench.backward()), sums);
  bench.weight_gradient = false;
  bench.lowering.global_norm = GlobalNorm::summing;
  EXPECT_THAT(works_of(bench.backward()), sums);
}

TEST(GlobalBatchNorm, FirstLayerOnlySums) {
  LayerBench bench{"{type: batch_norm, statistics: global}", {kImage}};
  bench.input_gradient = false;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("affine_norm", KernelKind::batch_norm, Phase::backward_weights, 5 * 120,
                                 kBytes * 2, {})));
}

// num_batches_tracked, an int64: 8 B read and written before each forward pass; not by constant statistics.
TEST(BatchNorm, CountsBatches) {
  LayerBench bench{"{type: batch_norm}", {kImage}};
  EXPECT_EQ(bench.forward().size(), 1u);
  bench.lowering.counts_batches = true;
  const auto forward = works_of(bench.forward());
  ASSERT_EQ(forward.size(), 2u);
  EXPECT_EQ(forward[0], (Work{"count_batches",
                              KernelKind::elementwise,
                              Phase::forward,
                              fixed_size(1),
                              {},
                              fixed_size(8),
                              fixed_size(8),
                              {}}));
  EXPECT_EQ(bench.backward().size(), 1u);
  LayerBench global{"{type: batch_norm, statistics: global}", {kImage}};
  global.lowering.counts_batches = true;
  EXPECT_EQ(global.forward().size(), 1u);
}

// Composite: five operations on one number a channel (var + eps, rsqrt, * gamma, mean *, beta -), then x *
// inv and + shift: x is read, and written, twice. Backward: the sum of dy, dy * x, its sum, four operations
// on channels; dy * inv.
TEST(GlobalBatchNorm, AnOperationForEachTerm) {
  LayerBench bench{"{type: batch_norm, statistics: global}", {kImage}};
  bench.lowering.global_norm = GlobalNorm::composite;
  const auto large = [](const std::vector<Kernel>& kernels) {
    Size bytes;
    for (const Kernel& kernel : kernels) {
      for (const Size& moved : {kernel.read_bytes, kernel.written_bytes})
        if (moved.per_sample > 0) bytes += moved;
    }
    return bytes;
  };
  const auto runs = [](const std::vector<Kernel>& kernels) {
    std::int64_t sum = 0;
    for (const Kernel& kernel : kernels) sum += kernel.repeat;
    return sum;
  };
  EXPECT_EQ(large(bench.forward()), kBytes * 4);
  EXPECT_EQ(runs(bench.forward()), 7);
  EXPECT_EQ(large(bench.backward()), kBytes * (1 + 3 + 1 + 2));
  EXPECT_EQ(runs(bench.backward()), 8);
  EXPECT_TRUE(bench.needs().inputs);
  bench.weight_gradient = false;  // dy * inv alone
  EXPECT_EQ(large(bench.backward()), kBytes * 2);
  EXPECT_EQ(runs(bench.backward()), 1);
  EXPECT_FALSE(bench.needs().inputs);
  bench.lowering.product_keeps = SavedMatmulInputs::both;  // x * inv keeps x though inv has no gradient
  EXPECT_TRUE(bench.needs().inputs);
}

// 12 channels of 4x6 with 4 values an anchor: 3 anchors in each of 24 cells. A view costs nothing, a copy
// reads and writes 288 numbers each way.
TEST(AnchorRows, ViewOrCopy) {
  const LayerBench view{"{type: anchor_rows, values: 4}", {image(12, 4, 6)}};
  EXPECT_EQ(view.output, rows(72, 4));
  EXPECT_THAT(view.forward(), IsEmpty());
  EXPECT_THAT(view.backward(), IsEmpty());
  EXPECT_TRUE(view.layer->passes_gradient_through());
  EXPECT_TRUE(view.layer->runs_in_place(view.lowering));

  const LayerBench copy{"{type: anchor_rows, values: 4, copied: true}", {image(12, 4, 6)}};
  EXPECT_THAT(works_of(copy.forward()),
              ElementsAre(forward("anchor_rows", KernelKind::transpose, 0, 1152, 1152)));
  EXPECT_THAT(works_of(copy.backward()),
              ElementsAre(moving("anchor_rows", KernelKind::transpose, Phase::backward_data, 0,
                                 per_sample(1152), per_sample(1152))));
  EXPECT_FALSE(copy.layer->passes_gradient_through());
  EXPECT_FALSE(copy.layer->runs_in_place(copy.lowering));
}

// The gradient of joined rows is a slice, which is copied; the rows themselves are a view of NHWC images.
TEST(AnchorRows, CopiesSlices) {
  LayerBench joined{"{type: anchor_rows, values: 4, copied: slices}", {image(12, 4, 6)}};
  EXPECT_EQ(joined.forward().size(), 1u);
  joined.lowering.layout = Layout::nhwc;
  EXPECT_THAT(joined.forward(), IsEmpty());
  EXPECT_EQ(joined.backward().size(), 1u);
  EXPECT_TRUE(joined.layer->runs_in_place(joined.lowering));
  EXPECT_FALSE(joined.layer->passes_gradient_through());
}

TEST(AnchorRows, WantsWholeAnchors) {
  const auto layer = test::make_layer("{type: anchor_rows, values: 4}");
  const std::vector<Shape> ten{image(10, 4, 6)};
  EXPECT_THROW((void)layer->output_shape(ten), ShapeMismatch);
}

// 4x5 cells, centres at 0, 16, ..., in an image of 60x80. Squares of 32 reach 16 around: rows 16 and 32 (16 +
// 32
// <= 60, not 16 + 48), columns 16 to 64 (64 + 16 = 80 is still inside), 2 x 4. Four times as wide as high at
// the same area, 16x64: 8 and 32 around, rows 16, 32 and 48, columns 32 and 48: 3 x 2. Together 14, whose
// indices the host sends.
TEST(InsideAnchors, CountsAnchorsWithinTheImage) {
  const LayerBench bench{"{type: inside_anchors, sizes: [32], ratios: [1, 4], stride: 16}",
                         {image(12, 4, 5), image(3, 60, 80)}};
  EXPECT_EQ(bench.output, rows(14, 1));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(to_device(per_sample(14 * 4))));
  EXPECT_FALSE(bench.layer->differentiable());
  const std::vector<Shape> small{image(12, 2, 2), image(3, 31, 31)};
  EXPECT_THROW((void)bench.layer->output_shape(small), ShapeMismatch);
}

// Every size comes in every ratio: long lists of both would take forever.
TEST(InsideAnchors, RefusesLongLists) {
  const auto list = [](int numbers) {
    std::string text = "[1";
    for (int i = 1; i < numbers; ++i) text += ", 1";
    return text + "]";
  };
  const auto make = [](const std::string& sizes, const std::string& ratios) {
    (void)test::make_layer("{type: inside_anchors, stride: 16, sizes: " + sizes + ", ratios: " + ratios +
                           "}");
  };
  EXPECT_NO_THROW(make(list(100), list(100)));
  EXPECT_THAT([&] { make(list(101), "[1]"); },
              ThrowsMessage<SpecError>(StrEq("layer.yaml:1:43: sizes: has 101 numbers; expected 1 to 100")));
  EXPECT_THAT([&] { make("[8]", list(101)); },
              ThrowsMessage<SpecError>(StrEq("layer.yaml:1:56: ratios: has 101 numbers; expected 1 to 100")));
  EXPECT_THAT([&] { make("[]", "[1]"); }, ThrowsMessage<SpecError>(HasSubstr("has 0 numbers")));
}

// 10 of 72 rows of 4: reads 10 indices and 40 numbers. The gradient is cleared (288 numbers), then 10 rows
// are written into it.
TEST(SelectRows, GathersAndScatters) {
  LayerBench bench{"{type: select_rows}", {rows(72, 4), rows(10, 9)}};
  EXPECT_EQ(bench.output, rows(10, 4));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(forward("select_rows", KernelKind::gather, 0, 160 + 40, 160)));
  EXPECT_THAT(
      works_of(bench.backward()),
      ElementsAre(moving("fill", KernelKind::elementwise, Phase::backward_data, 0, {}, per_sample(1152)),
                  moving("select_rows", KernelKind::gather, Phase::backward_data, 0, per_sample(200),
                         per_sample(160))));
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

const std::vector<Shape> kPredictions{rows(1000, 2), rows(1000, 4)};

// The best 200 of 1000 anchors compete and 50 are kept. Softmax over 2000 scores, 5 operations each; 15
// operations on pairs of 4000 numbers; a sort in four passes, each reading keys twice and indices once and
// writing both; 200 rows of 5 gathered by index; 24 operations for each of 200 x 200 / 2 pairs, a mask of 200
// rows of ceil(200 / 64) = 4 words of 8 B = 6400 B = 1600 numbers (one image's at a time), walked through for
// 200 indices; the host reads how many are left, 8 B; 50 rows gathered.
TEST(Proposal, OnTheDevice) {
  const LayerBench bench{"{type: proposal, before: 200, after: 50, suppression: device}", kPredictions};
  EXPECT_EQ(bench.output, rows(50, 5));
  const auto kernels = bench.forward();
  EXPECT_THAT(
      works_of(kernels),
      ElementsAre(forward("softmax", KernelKind::softmax, 10'000, 8000, 8000),
                  forward("box_decode", KernelKind::elementwise, 4000, 32'000, 16'000),
                  forward("radix_sort", KernelKind::gather, 0, 12'000, 8000),
                  forward("gather", KernelKind::gather, 0, 4000 + 800, 4000),
                  Work{"nms",
                       KernelKind::elementwise,
                       Phase::forward,
                       per_sample(480'000),
                       {},
                       per_sample(4000),
                       per_sample(6400),
                       fixed_size(6400)},
                  forward("nms_choice", KernelKind::reduction, 1600, 6400, 800), to_host(fixed_size(8)),
                  forward("gather", KernelKind::gather, 0, 1000 + 200, 1000)));
  EXPECT_THAT(repeats_of(kernels), ElementsAre(1, 15, 4, 1, 1, 1, 1, 1));
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.layer->differentiable());
}

// MXNet's operator computes every pair in both orders, copies the mask to the host and 200 indices back.
TEST(Proposal, MaskToTheHost) {
  const LayerBench bench{"{type: proposal, before: 200, after: 50, suppression: mask_to_host}", kPredictions};
  const auto works = works_of(bench.forward());
  ASSERT_EQ(works.size(), 8u);
  EXPECT_EQ(works[4].flops, per_sample(24 * 200 * 200));
  EXPECT_EQ(works[5], to_host(per_sample(6400)));
  EXPECT_EQ(works[6], to_device(per_sample(800)));
  EXPECT_EQ(bench.forward()[1].repeat, 4);
}

// All 1000 compete: their boxes and scores, 5 numbers each, go to the host and stay there.
TEST(Proposal, OnTheHost) {
  const LayerBench bench{"{type: proposal, after: 50, suppression: host}", kPredictions};
  const auto works = works_of(bench.forward());
  ASSERT_EQ(works.size(), 3u);
  EXPECT_EQ(works[2], to_host(per_sample(20'000)));
}

TEST(Proposal, NoMoreThanThereAreAnchors) {
  const LayerBench bench{"{type: proposal, before: 12000, after: 2000, suppression: device}", kPredictions};
  EXPECT_EQ(bench.output, rows(1000, 5));
}

TEST(Proposal, WantsScoresAndOffsetsOfTheSameAnchors) {
  const auto layer = test::make_layer("{type: proposal, after: 50, suppression: host}");
  const std::vector<Shape> swapped{rows(1000, 4), rows(1000, 2)};
  const std::vector<Shape> fewer{rows(1000, 2), rows(999, 4)};
  EXPECT_THROW((void)layer->output_shape(swapped), ShapeMismatch);
  EXPECT_THROW((void)layer->output_shape(fewer), ShapeMismatch);
  const std::vector<Shape> of_no_image{{fixed_size(1000), {2}}, {fixed_size(1000), {4}}};
  EXPECT_THAT([&] { (void)layer->output_shape(of_no_image); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("expected anchors of each image")));
}

// A label, four offsets, four weights: 9 numbers an anchor from the host.
TEST(AnchorTarget, FromTheHost) {
  const LayerBench bench{"{type: anchor_target, on: host}", {rows(1000, 2)}};
  EXPECT_EQ(bench.output, rows(1000, 9));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(to_device(per_sample(36'000))));
  EXPECT_FALSE(bench.layer->differentiable());
}

// 1000 anchors against 4 objects: 16 operations on 4000 pairs; 34 kernels on one number an anchor; the host
// reads two counts; 15 operations on the 256 boxes drawn.
TEST(AnchorTarget, OnTheDevice) {
  const LayerBench bench{"{type: anchor_target, on: device, samples: 256, objects: 4}", {rows(1000, 2)}};
  EXPECT_EQ(bench.output, rows(256, 9));
  const auto kernels = bench.forward();
  EXPECT_THAT(
      works_of(kernels),
      ElementsAre(forward("box_overlap", KernelKind::elementwise, 4000, 32'000, 16'000),
                  forward("box_draw", KernelKind::elementwise, 1000, 8000, 4000), to_host(fixed_size(8)),
                  to_host(fixed_size(8)), forward("box_encode", KernelKind::elementwise, 1024, 8192, 4096)));
  EXPECT_THAT(repeats_of(kernels), ElementsAre(16, 34, 1, 1, 15));
}

// 300 proposals of 5 numbers to the host; back come 64 regions of 5 numbers, a label, 84 offsets and weights.
TEST(ProposalTarget, RoundTrip) {
  const LayerBench bench{"{type: proposal_target, on: round_trip, regions: 64, offsets: 84}", {rows(300, 5)}};
  EXPECT_EQ(bench.output, rows(64, 174));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(to_host(per_sample(6000)), to_device(per_sample(64 * 174 * 4))));
  const LayerBench slow{"{type: proposal_target, on: round_trip, regions: 64, offsets: 84, host_time: 10 ms}",
                        {rows(300, 5)}};
  EXPECT_EQ(slow.forward().back().host_nanoseconds, (Size{0, 10'000'000}));
  const LayerBench host{"{type: proposal_target, on: host, regions: 64, offsets: 4}", {rows(300, 5)}};
  EXPECT_THAT(works_of(host.forward()), ElementsAre(to_device(per_sample(64 * 14 * 4))));
}

// 8 regions of 5x4x6 features pooled to 2x2: 160 numbers, 640 B, and as many indices. Forward reads the
// features and 8 x 5 numbers of regions; 4 comparisons a maximum. Backward clears the features' gradient and
// adds the maxima's to it. The regions get no gradient.
TEST(RoiPool, MaximaAndTheirPlaces) {
  LayerBench bench{"{type: roi_pool, size: 2}", {kImage, rows(8, 174)}};
  EXPECT_EQ(bench.output, (Shape{per_sample(8), {5, 2, 2}}));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(forward("roi_pool", KernelKind::pooling, 640, 480 + 160, 1280)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("fill", KernelKind::elementwise, Phase::backward_data, 0, {}, kBytes),
                          moving("roi_pool", KernelKind::pooling, Phase::backward_data, 640,
                                 per_sample(640 + 640 + 160 + 480), kBytes)));
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(640));
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_EQ(bench.needs().extra_bytes, Size{});
}

// Bilinear: three interpolations of three operations; no indices.
TEST(CropAndResize, InterpolatesAndKeepsNothing) {
  const LayerBench bench{"{type: crop_and_resize, size: 2}", {kImage, rows(8, 14)}};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(forward("crop_and_resize", KernelKind::pooling, 9 * 160, 480 + 160, 640)));
  EXPECT_EQ(bench.backward()[1].read_bytes, per_sample(640 + 160 + 480));
  EXPECT_EQ(bench.needs().extra_bytes, Size{});
}

// Half precision halves features and their gradients, not indices and boxes.
TEST(RoiPool, Fp16) {
  LayerBench bench{"{type: roi_pool, size: 2}", {kImage, rows(8, 174)}};
  bench.precision = test::kFp16;
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(240 + 160));
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(320 + 640));
}

// 10 rows of 4 numbers, 160 B: difference from the targets, smooth L1, weight, sum; backward the last two.
TEST(SmoothL1Loss, AnOperationForEachTerm) {
  LayerBench bench{"{type: smooth_l1_loss}", {rows(10, 4), rows(10, 9)}};
  EXPECT_TRUE(bench.layer->is_loss());
  EXPECT_THAT(
      works_of(bench.forward()),
      ElementsAre(forward("sub", KernelKind::elementwise, 40, 320, 160),
                  forward("smooth_l1", KernelKind::elementwise, 40, 160, 160),
                  forward("mul", KernelKind::elementwise, 40, 320, 160),
                  moving("sum", KernelKind::reduction, Phase::forward, 40, per_sample(160), fixed_size(4))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("mul", KernelKind::elementwise, Phase::backward_data, 40, per_sample(320),
                                 per_sample(160)),
                          moving("smooth_l1", KernelKind::elementwise, Phase::backward_data, 40,
                                 per_sample(320), per_sample(160))));
  EXPECT_TRUE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  const std::vector<Shape> fewer{rows(10, 4), rows(9, 9)};
  EXPECT_THROW((void)bench.layer->output_shape(fewer), ShapeMismatch);
}

// Matching, drawing and encoding are 16 + 34 + 15 operations, half of them before each of two counts; the
// host launches them again for every image but the first, 8 us each.
TEST(AnchorTarget, ImagesTakeTurns) {
  const LayerBench loop{"{type: anchor_target, on: device, samples: 256, objects: 4}", {rows(1000, 2)}};
  Size host;
  for (const Kernel& kernel : loop.forward()) host += kernel.host_nanoseconds;
  EXPECT_EQ(host, (Size{-2 * 32 * 8'000, 2 * 32 * 8'000}));
  const LayerBench together{"{type: anchor_target, on: device, samples: 256, objects: 4, batched: true}",
                            {rows(1000, 2)}};
  for (const Kernel& kernel : together.forward()) EXPECT_EQ(kernel.host_nanoseconds, Size{});
}

}  // namespace
}  // namespace tbdsim
