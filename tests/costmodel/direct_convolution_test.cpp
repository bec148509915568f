// Convolutions of groups: their products, the direct kernels and who computes them, by hand.
#include "costmodel/families/direct_convolution.h"

#include <cmath>
#include <set>
#include <vector>

#include <gmock/gmock.h>

#include "costmodel/families/convolution.h"

namespace tbdsim {
namespace {

// 10 SMs of 1 GHz issue 1.28e12 instructions a second.
constexpr Hardware kCard{.sm_count = 10, .peak = 4e12, .bandwidth = 100e9, .clock = 1e9};

std::vector<double> start_values() {
  std::vector<double> values;
  for (const Parameter& parameter : ConvFamily::parameters) values.push_back(parameter.start);
  return values;
}

// 4 images of 64 x 28 x 28 to 128 channels in 16 groups: 8 filters over 4 channels each, 3 x 3, half the
// size.
ConvCall grouped(Phase phase = Phase::forward) {
  return {.phase = phase,
          .images = 4,
          .channels = 64,
          .height = 28,
          .width = 28,
          .filters = 128,
          .out_height = 14,
          .out_width = 14,
          .kernel_height = 3,
          .kernel_width = 3,
          .stride_height = 2,
          .stride_width = 2,
          .pad_height = 1,
          .pad_width = 1,
          .limits = {},
          .groups = 16};
}

ConvCall depthwise(Phase phase = Phase::forward) {
  ConvCall call = grouped(phase);
  call.filters = call.groups = 64;
  return call;
}

std::set<Algorithm> algorithms(const ConvCall& call, const Hardware& hardware = kCard) {
  std::set<Algorithm> all;
  ConvFamily::for_each_choice(call, hardware, [&](const Choice& choice) { all.insert(choice.algorithm); });
  return all;
}

double seconds(const ConvCall& call, const Choice& choice, const Hardware& hardware = kCard) {
  return ConvFamily::time<double>(call, choice, hardware, {1, 1}, start_values()).total;
}

// A product for each of 16 groups. Multiply-adds in every pass: 4 * 128 * 196 results of 4 * 9, but for the
// data pass, which multiplies the zeros between the strides too.
TEST(GroupedConvolution, AProductForEachGroup) {
  const ConvProduct forward = conv_product(grouped());
  EXPECT_EQ(forward.m, 4 * 196);
  EXPECT_EQ(forward.n, 8);
  EXPECT_EQ(forward.depth, 36);
  EXPECT_EQ(forward.count, 16);
  const ConvProduct data = conv_product(grouped(Phase::backward_data));
  EXPECT_EQ(data.m, 4 * 784);
  EXPECT_EQ(data.n, 4);
  EXPECT_EQ(data.depth, 72);
  const ConvProduct weights = conv_product(grouped(Phase::backward_weights));
  EXPECT_EQ(weights.m, 36);
  EXPECT_EQ(weights.n, 8);
  EXPECT_EQ(weights.depth, 4 * 196);
  EXPECT_EQ(ConvFamily::flops(grouped()), 2.0 * 4 * 128 * 196 * 36);
  // Input 4 * 64 * 784, output 4 * 128 * 196, weights 128 * 4 * 9 numbers of 4 B.
  EXPECT_EQ(ConvFamily::bytes(grouped()), 4.0 * (200'704 + 100'352 + 4'608));
}

// 100,352 results of 36 multiply-adds, in the data pass 200,704 of 72; of one channel a group 50,176 of 9.
TEST(DirectConvolution, InstructionsOfEachPass) {
  EXPECT_DOUBLE_EQ(direct_instructions(grouped(), kCard), 100'352.0 * 40 * 36);
  EXPECT_DOUBLE_EQ(direct_instructions(grouped(Phase::backward_data), kCard), 200'704.0 * 32 * 72);
  EXPECT_DOUBLE_EQ(direct_instructions(grouped(Phase::backward_weights), kCard), 100'352.0 * 60 * 36);
  // Fewer results than threads that hide latency: 512 on each of 1,000 SMs.
  Hardware large = kCard;
  large.sm_count = 1'000;
  EXPECT_DOUBLE_EQ(direct_instructions(grouped(), large), 512'000.0 * 40 * 36);
  ConvCall groups = grouped();
  groups.channels_last = true;
  EXPECT_DOUBLE_EQ(direct_instructions(groups, kCard), 100'352.0 * (900 + 6.5 * 36));
}

TEST(DirectConvolution, InstructionsOfTheLibrarysDepthwiseKernels) {
  ConvCall call = depthwise();
  EXPECT_DOUBLE_EQ(direct_instructions(call, kCard), 50'176.0 * (75 + 15 * 9));
  call.stride_height = call.stride_width = 1;
  EXPECT_DOUBLE_EQ(direct_instructions(call, kCard), 50'176.0 * (60 + 5 * 9));
  Hardware hopper = kCard;
  hopper.compute_capability = 90;
  ConvCall nhwc = depthwise(Phase::backward_data);
  nhwc.channels_last = true;
  // The data pass of a stride has a slower kernel before Hopper, that of none has not.
  EXPECT_DOUBLE_EQ(direct_instructions(nhwc, kCard), 200'704.0 * (260 + 40 * 9));
  EXPECT_DOUBLE_EQ(direct_instructions(nhwc, hopper), 200'704.0 * (27 + 9.25 * 9));
  nhwc.stride_height = nhwc.stride_width = 1;
  EXPECT_DOUBLE_EQ(direct_instructions(nhwc, kCard), 200'704.0 * (30 + 2.75 * 9));
  EXPECT_DOUBLE_EQ(direct_instructions(nhwc, hopper), 200'704.0 * (30 + 2.75 * 9));
  nhwc.kernel_height = nhwc.kernel_width = 7;
  nhwc.element_bytes = 2;
  EXPECT_DOUBLE_EQ(direct_instructions(nhwc, hopper), 200'704.0 * (44 + 11.25 * 49));
}

// Filters of 3 x 3 have unrolled loops, those of 7 x 7 have not. Gradients by the weights: 64 * 9 blocks, for
// each of 4 images seven steps of a warp over 196 pixels.
TEST(DirectConvolution, InstructionsOfAFrameworksOwnKernels) {
  ConvCall own = depthwise();
  own.framework_kernel = true;
  EXPECT_DOUBLE_EQ(direct_instructions(own, kCard), 50'176.0 * (175 + 16.5 * 9));
  own.phase = Phase::backward_data;
  EXPECT_DOUBLE_EQ(direct_instructions(own, kCard), 200'704.0 * (450 + 11.5 * 9));
  own.stride_height = own.stride_width = 1;
  EXPECT_DOUBLE_EQ(direct_instructions(own, kCard), 200'704.0 * (530 + 4.2 * 9));
  own.phase = Phase::backward_weights;
  EXPECT_DOUBLE_EQ(direct_instructions(own, kCard), 576.0 * 4 * 32 * (48 * 7 + 100));
  Hardware large = kCard;
  large.sm_count = 1'000;  // three and a half blocks on each
  EXPECT_DOUBLE_EQ(direct_instructions(own, large), 3'500.0 * 4 * 32 * (48 * 7 + 100));
  own.phase = Phase::forward;
  own.kernel_height = own.kernel_width = 7;
  EXPECT_DOUBLE_EQ(direct_instructions(own, kCard), 50'176.0 * (400 + 19 * 49));
}

// Launch, and the root of both squares: 144.5e6 instructions at 1.28e12 a second, 1,222,656 B at 0.8 of 100
// GB/s.
TEST(DirectConvolution, Time) {
  const double issue = 100'352.0 * 40 * 36 / 1.28e12;
  const double memory = 1'222'656 / 80e9;
  const double launch = start_values()[ConvFamily::kLaunch];
  EXPECT_NEAR(seconds(grouped(), kDirectChoice), launch + std::sqrt(issue * issue + memory * memory), 1e-12);
}

TEST(DirectConvolution, WhoComputesWhat) {
  ConvCall dense = grouped();
  dense.groups = 1;
  EXPECT_FALSE(algorithms(dense).contains(Algorithm::direct));
  EXPECT_EQ(algorithms(grouped()), (std::set{Algorithm::implicit_gemm, Algorithm::direct}));
  EXPECT_EQ(algorithms(grouped(Phase::backward_data)),
            (std::set{Algorithm::implicit_gemm, Algorithm::direct}));
  ConvCall own = depthwise();
  own.framework_kernel = true;
  EXPECT_EQ(algorithms(own), std::set{Algorithm::direct});
  ConvCall nhwc = grouped();
  nhwc.channels_last = true;
  EXPECT_EQ(algorithms(nhwc), std::set{Algorithm::direct});
}

// 32 groups of 4 channels share tiles of 64 on any tensor core: 16 of them at a time, as 8 dense products.
TEST(GroupedConvolution, SharesTiles) {
  ConvCall call = grouped();
  EXPECT_FALSE(shares_tiles(call));  // 16 groups, 4 channels to 8 filters
  call.channels = call.filters = 128;
  EXPECT_FALSE(shares_tiles(call));
  call.groups = 32;
  EXPECT_TRUE(shares_tiles(call));
  Hardware rtx3090 = kCard;
  rtx3090.tensor_cores = true;
  rtx3090.compute_capability = 86;
  call.channels_last = true;
  EXPECT_EQ(algorithms(call, rtx3090), (std::set{Algorithm::group_tiles, Algorithm::direct}));
  EXPECT_EQ(algorithms(call), std::set{Algorithm::direct});  // without tensor cores
  const ConvProduct product = conv_product(ConvSizes(call), Algorithm::group_tiles);
  EXPECT_EQ(product.count, 2);
  EXPECT_EQ(product.m, 4 * 196);
  EXPECT_EQ(product.n, 64);
  EXPECT_EQ(product.depth, 64 * 9);
  // Most of these products are zeros, which nobody counts: 2 * 4 * 128 * 196 * 4 * 9.
  EXPECT_EQ(ConvFamily::executed(call, {Algorithm::group_tiles, 64, 64, 1}), 2.0 * 4 * 128 * 196 * 36);
}

// Other groups of NHWC images are products on tensor cores of V100 and A100, but not on those of an RTX 3090;
// these have no narrower tile than 128.
TEST(GroupedConvolution, ProductsInNhwc) {
  ConvCall nhwc = grouped();
  nhwc.channels_last = true;
  Hardware a100 = kCard;
  a100.tensor_cores = a100.hbm = true;
  a100.compute_capability = 80;
  EXPECT_EQ(algorithms(nhwc, a100), (std::set{Algorithm::implicit_gemm, Algorithm::direct}));
  ConvFamily::for_each_choice(nhwc, a100, [](const Choice& choice) {
    if (choice.algorithm == Algorithm::direct) return;
    EXPECT_EQ(choice.tile_n, 128);
  });
  Hardware rtx3090 = a100;
  rtx3090.hbm = false;
  EXPECT_EQ(algorithms(nhwc, rtx3090), std::set{Algorithm::direct});
}

// Winograd and Fourier transforms need neighbouring pixels.
TEST(DilatedConvolution, IsAnImplicitProduct) {
  ConvCall call = grouped();
  call.groups = call.stride_height = call.stride_width = 1;
  call.out_height = call.out_width = 28;
  EXPECT_TRUE(algorithms(call).contains(Algorithm::winograd));
  call.dilation_height = call.dilation_width = 2;
  EXPECT_EQ(algorithms(call), std::set{Algorithm::implicit_gemm});
}

// Measured calls of groups, of one channel each, of dilation and of NHWC images are no neighbours of others.
TEST(GroupedConvolution, HasMeasurementsOfItsOwn) {
  std::set<std::uint64_t> groups;
  for (const double dilation : {1.0, 2.0}) {
    for (const double of : {1.0, 16.0, 64.0}) {
      for (const bool last : {false, true}) {
        ConvCall call = grouped();
        call.groups = of;
        call.dilation_height = dilation;
        call.channels_last = last;
        groups.insert(ConvFamily::group(call));
      }
    }
  }
  EXPECT_EQ(groups.size(), 10u);  // of one group NHWC images make no difference
}

// Channels of groups are not padded for tensor cores, but their products run at the rate of padded ones.
TEST(GroupedConvolution, OnTensorCores) {
  ConvCall call = grouped();
  call.element_bytes = 2;
  call.limits.pads_channels = PadsChannels::always;
  EXPECT_EQ(padded(call).channels, 64);
  EXPECT_EQ(conv_padding(call), 2);  // 4 channels as 8
  call.phase = Phase::backward_data;
  EXPECT_EQ(conv_padding(call), 1);  // 8 filters
  call.phase = Phase::forward;
  call.element_bytes = 4;
  EXPECT_EQ(conv_padding(call), 1);  // 4 channels of TF32 are 16 bytes
}

// Copies of an image of 200,704 elements and one of 100,352 around the products. NCHW: read and written.
// NHWC, one group at a time: 128 instructions for each element read, 230 for each written; groups of 4
// channels that share tiles need none.
TEST(GroupedConvolution, CopiesImages) {
  constexpr Choice kOneByOne{Algorithm::implicit_gemm, 128, 128, 1},
      kShared{Algorithm::group_tiles, 64, 64, 1};
  ConvCall call = grouped();
  call.element_bytes = 2;
  EXPECT_EQ(copies_around_groups(call, kOneByOne).bytes, 2.0 * 2 * (200'704 + 100'352));
  call.channels_last = true;
  EXPECT_EQ(copies_around_groups(call, kOneByOne).bytes, 0);
  EXPECT_EQ(copies_around_groups(call, kOneByOne).instructions, 128.0 * 200'704 + 230.0 * 100'352);
  call.phase = Phase::backward_data;
  EXPECT_EQ(copies_around_groups(call, kOneByOne).instructions, 230.0 * 200'704 + 128.0 * 100'352);
  call.phase = Phase::backward_weights;
  EXPECT_EQ(copies_around_groups(call, kOneByOne).instructions, 128.0 * (200'704 + 100'352));
  call.filters = 64;
  EXPECT_EQ(copies_around_groups(call, kShared).instructions, 0);
}

// Two groups of 24 channels are 32 each in a tile of 64, from Hopper on; their images are padded and cut
// again.
TEST(GroupedConvolution, PadsGroupsToShareTiles) {
  ConvCall call = grouped();
  call.channels = call.filters = 48;
  call.groups = 2;
  call.element_bytes = 2;
  Hardware card = kCard;
  card.tensor_cores = card.hbm = true;
  card.compute_capability = 80;
  EXPECT_FALSE(pads_groups(call, card));
  card.compute_capability = 90;
  EXPECT_TRUE(pads_groups(call, card));
  EXPECT_TRUE(algorithms(call, card).contains(Algorithm::group_tiles));
  const ConvProduct product = conv_product(ConvSizes(call), Algorithm::group_tiles);
  EXPECT_EQ(product.count, 1);
  EXPECT_EQ(product.n, 64);
  EXPECT_EQ(product.depth, 64 * 9);
  constexpr Choice kShared{Algorithm::group_tiles, 64, 64, 1};
  const double inputs = 4.0 * 48 * 784, outputs = 4.0 * 48 * 196;
  EXPECT_DOUBLE_EQ(copies_around_groups(call, kShared).bytes, 2 * (1 + 4 / 3.0) * (inputs + outputs));
  call.channels_last = true;
  EXPECT_DOUBLE_EQ(copies_around_groups(call, kShared).instructions, 230 * 4 / 3.0 * (inputs + outputs));
  call.channels = call.filters = 80;  // 40 channels a group: wider than any shared tile
  EXPECT_FALSE(pads_groups(call, card));
  call.groups = call.channels;
  EXPECT_FALSE(pads_groups(call, card));  // depthwise
}

}  // namespace
}  // namespace tbdsim
