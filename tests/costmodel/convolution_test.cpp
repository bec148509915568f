// Convolutions: grids, bytes and choices of each algorithm, by hand.
#include "costmodel/families/convolution.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include "tests/costmodel/convolution_layer.h"

namespace tbdsim {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::Ne;
using testing::Not;

using test::choices;
using test::fastest;
using test::kCard;
using test::kImplicit;
using test::layer;
using test::seconds;
using test::start_values;
using test::strided;

void expect_grid(Phase phase, const Choice& choice, double blocks, double depth) {
  const BlockGrid grid = conv_grid(layer(phase), choice);
  EXPECT_DOUBLE_EQ(grid.blocks, blocks);
  EXPECT_DOUBLE_EQ(grid.depth, depth);
}

// Forward: 8 28 28 = 6272 pixels are 49 tiles of 128, 96 filters are 2 of 64; 64 9 = 576 deep. Data: 64
// channels are 1; 96 9 = 864 deep. Weights: 576 are 5, 96 are 2, a quarter of 6272 deep.
TEST(Convolution, ImplicitProducts) {
  expect_grid(Phase::forward, kImplicit, 98, 576);
  expect_grid(Phase::backward_data, kImplicit, 49, 864);
  expect_grid(Phase::backward_weights, {Algorithm::implicit_gemm, 128, 64, 4}, 40, 1568);
}

// Fused: 96 filters are 3 of 32, 8 images, 28 x 28 are 4 x 2 of 8 x 16 results; data: 64 are 2. Not fused:
// 8 7 7 = 392 patches are 4 tiles of 128, 36 products; weights: 64 channels x 96 filters, 392 deep.
TEST(Convolution, Winograd) {
  expect_grid(Phase::forward, kWinogradChoice, 3 * 8 * 8, 64);
  expect_grid(Phase::backward_data, kWinogradChoice, 2 * 8 * 8, 96);
  const Choice nonfused{Algorithm::winograd_nonfused, 128, 128, 1};
  expect_grid(Phase::forward, nonfused, 36 * 4, 64);
  expect_grid(Phase::backward_weights, nonfused, 36, 392);
}

// 28 x 28 results of 5 x 5 filters are one tile of 32 x 32 that holds 28 x 28: 8 tiles, 544 complex products
// of 4 multiply-adds; weights: 64 channels x 96 filters, 8 tiles deep. 3 x 3 filters have Winograd's
// algorithm.
TEST(Convolution, Fourier) {
  ConvCall call = layer(Phase::forward);
  call.kernel_height = call.kernel_width = 5;
  const Choice fft{Algorithm::fft_tiling, 128, 128, 1};
  EXPECT_EQ(conv_grid(call, fft).blocks, 544);
  EXPECT_EQ(conv_grid(call, fft).depth, 4 * 64);
  EXPECT_EQ(ConvFamily::workspace_bytes(call, fft), 4 * 2 * 544 * (8 * (64 + 96) + 64 * 96));
  const ConvTraffic traffic = conv_traffic(call, fft);  // spectra are written and read
  EXPECT_EQ(traffic.serialized, ConvSizes(call).tensors + 2 * 4 * 2 * 544 * 8 * (64 + 96));
  EXPECT_EQ(traffic.filters, 2 * 4 * 2 * 544 * 64 * 96);
  EXPECT_THAT(choices(call), Contains(Field(&Choice::algorithm, Algorithm::fft_tiling)));
  call.phase = Phase::backward_weights;
  EXPECT_EQ(conv_grid(call, fft).blocks, 544);
  EXPECT_EQ(conv_grid(call, fft).depth, 4 * 8);
  EXPECT_THAT(choices(layer(Phase::forward)), Each(Field(&Choice::algorithm, Ne(Algorithm::fft_tiling))));
}

// Columns of a strided data pass: 64 x 8 14 14 = 100352 elements; the gradient they are summed into: 401408.
TEST(Convolution, Workspace) {
  const ConvCall forward = layer(Phase::forward);
  EXPECT_EQ(ConvFamily::workspace_bytes(forward, kImplicit), 0);
  EXPECT_EQ(ConvFamily::workspace_bytes(forward, kWinogradChoice), 4 * 16 * 64 * 96);
  EXPECT_EQ(ConvFamily::workspace_bytes(forward, {Algorithm::winograd_nonfused, 128, 128, 1}),
            4 * 36 * (392 * (64 + 96) + 64 * 96));
  EXPECT_EQ(
      ConvFamily::workspace_bytes(layer(Phase::backward_weights), {Algorithm::implicit_gemm, 128, 64, 4}),
      4 * 576 * 96 * 4);
  const Choice col2im{Algorithm::col2im, 128, 64, 1};
  const ConvCall data = strided(Phase::backward_data);
  EXPECT_EQ(ConvFamily::workspace_bytes(data, col2im), 0);
  EXPECT_EQ(conv_traffic(data, col2im).serialized, 4 * (100352 + 401408));
}

// Images of 8 x 28 x 28 pixels of 64 and 96 channels, 9 taps of 64 x 96 weights: 2 bytes each. Transformed,
// 36 times 392 patches of 160 channels and the weights: 4 bytes each, written and read, if computed in fp32.
TEST(Convolution, HalfPrecisionThatIsComputedInFp32HasWideTransforms) {
  constexpr Choice kNonfused{Algorithm::winograd_nonfused, 128, 128, 1};
  constexpr double kTensors = 2 * (8 * 28 * 28 * (64 + 96) + 9 * 64 * 96);
  constexpr double kTransformed = 36 * (392 * (64 + 96) + 64 * 96);
  ConvCall call = layer(Phase::forward);
  call.element_bytes = 2;
  EXPECT_EQ(conv_traffic(call, kNonfused).serialized, kTensors + 2 * 2 * kTransformed);
  call.limits.wide_transforms = true;
  EXPECT_EQ(conv_traffic(call, kNonfused).serialized, kTensors + 2 * 4 * kTransformed);
  EXPECT_EQ(conv_traffic(call, kWinogradChoice).serialized, (2 * 9 + 4 * 16) * 64 * 96);
  EXPECT_EQ(ConvFamily::workspace_bytes(call, kNonfused), 4 * kTransformed);
}

// An algorithm that needs more than the limit is no choice; something that needs nothing always remains.
TEST(Convolution, WorkspaceLimitRemovesChoices) {
  for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
    ConvCall call = layer(phase);
    const auto all = choices(call).size();
    call.limits.workspace = 1;
    EXPECT_LT(choices(call).size(), all);
    EXPECT_THAT(choices(call), Each(Field(&Choice::algorithm, Algorithm::implicit_gemm)));
    EXPECT_THAT(choices(call), Each(Field(&Choice::splits, 1)));
  }
}

TEST(Convolution, WithoutNonfusedWinograd) {
  for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
    ConvCall call = layer(phase);
    const auto all = choices(call).size();
    call.limits.nonfused_winograd = false;
    EXPECT_LT(choices(call).size(), all);
    EXPECT_THAT(choices(call), Each(Field(&Choice::algorithm, Ne(Algorithm::winograd_nonfused))));
  }
}

// A filter of one tap with a stride of two reads a quarter of the pixels, and its gradient by the input
// multiplies no zeros between them on tensor cores from Ampere on.
TEST(Convolution, StridesPassOverPixelsAndZeros) {
  ConvCall call = layer(Phase::forward);
  call.kernel_height = call.kernel_width = 1;
  call.stride_height = call.stride_width = 2;
  call.out_height = call.out_width = 14;
  EXPECT_EQ(bytes_passed_over(call), call.element_bytes * 8 * call.channels * (784 - 196));
  call.phase = Phase::backward_data;
  EXPECT_EQ(bytes_passed_over(call), 0);
  Hardware turing = kCard;
  turing.tensor_cores = true;
  turing.compute_capability = 75;
  Hardware ampere = turing;
  ampere.compute_capability = 80;
  const std::vector<double> p = start_values();
  const auto work = [&](const Hardware& hardware) {
    return ConvFamily::time<double>(call, kImplicit, hardware, {1, 1}, p).compute;
  };
  EXPECT_NEAR(work(turing) / work(ampere), 4, 1e-12);
}

// Residuals of half-precision calls whose channels were not padded hold for no padded call, nor do those of 8
// channels, around which nothing is copied.
TEST(Convolution, PaddedCallsHaveResidualsOfTheirOwn) {
  ConvCall aligned = layer(Phase::forward);
  aligned.element_bytes = 2;
  aligned.channels = 8;
  ConvCall odd = aligned;
  odd.channels = 3;
  EXPECT_NE(ConvFamily::group(odd), ConvFamily::group(aligned));
  odd.limits.pads_channels = PadsChannels::half;
  const std::uint64_t padded = ConvFamily::group(odd);
  EXPECT_NE(padded, ConvFamily::group(aligned));
  odd.channels = 5;
  EXPECT_EQ(ConvFamily::group(odd), padded);
  EXPECT_EQ(ConvFamily::features(odd).x, ConvFamily::features(aligned).x);
}

// Winograd is for 3 x 3 and 5 x 5 without a stride and for arithmetic that is not a tensor core's; columns
// are for data with a stride; the fused one makes no weights.
TEST(Convolution, WhatIsOnOffer) {
  const auto has = [](Algorithm algorithm) { return Contains(Field(&Choice::algorithm, algorithm)); };
  EXPECT_THAT(choices(layer(Phase::forward)), has(Algorithm::winograd));
  EXPECT_THAT(choices(layer(Phase::backward_weights)), Not(has(Algorithm::winograd)));
  EXPECT_THAT(choices(layer(Phase::backward_weights)), has(Algorithm::winograd_nonfused));
  EXPECT_THAT(choices(layer(Phase::backward_data)), Not(has(Algorithm::col2im)));
  EXPECT_THAT(choices(strided(Phase::backward_data)), has(Algorithm::col2im));
  Hardware tensor = kCard;
  tensor.tensor_cores = true;
  EXPECT_THAT(choices(layer(Phase::forward), tensor),
              Each(Field(&Choice::algorithm, Algorithm::implicit_gemm)));
}

// Fewer multiplications win where there are many: more flop/s than the card sustains; 64 x 64 results of
// 100352 terms leave 29 of 30 SMs idle unless the terms are split.
TEST(Convolution, TheFastestIsChosen) {
  ConvCall many = layer(Phase::forward);
  many.images = 64;
  EXPECT_EQ(fastest(many).choice.algorithm, Algorithm::winograd);
  EXPECT_GT(ConvFamily::flops(many) / fastest(many).parts.total, 0.9 * kCard.peak);
  ConvCall few = strided(Phase::backward_weights);
  few.filters = 64;
  few.images = 512;
  EXPECT_GE(fastest(few).choice.splits, 16);
}

// Faster hardware never takes longer, for any choice; twice the images never take less.
TEST(ConvolutionProperty, MonotoneInHardwareAndImages) {
  Hardware wide = kCard;  // twice the SMs, each as fast
  wide.sm_count *= 2;
  wide.peak *= 2;
  for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
    for (ConvCall call : {layer(phase), strided(phase)}) {
      for (const Choice& choice : choices(call)) {
        const double time = seconds(call, choice, kCard, {0.9, 1});
        EXPECT_LT(seconds(call, choice, kCard, {1.0, 1}), time);
        EXPECT_LT(seconds(call, choice, kCard, {0.9, 1.1}), time);
        EXPECT_LE(seconds(call, choice, wide, {0.9, 1}), time);
      }
      for (double last = 0; call.images <= 4096; call.images *= 2) {
        const double time = fastest(call).parts.total;
        EXPECT_GE(time, last) << call.images;
        last = time;
      }
    }
  }
}

// Splits that are left out win nothing: with the tiles on offer, no split is faster than the fastest choice
// by more than 1 %.
TEST(ConvolutionProperty, SplitsLeftOutDoNotWin) {
  for (const double channels : {16, 64, 256, 1024}) {
    for (const double images : {1, 8, 64}) {
      ConvCall call = strided(Phase::backward_weights);
      call.channels = channels;
      call.images = images;
      const double least = fastest(call).parts.total;
      for (Choice choice : choices(call)) {
        const double most = std::min<double>(conv_product(call).depth / kLeastSplitDepth, kMostSplits / 2);
        for (choice.splits = 2; choice.splits <= most; choice.splits *= 2) {
          EXPECT_GT(seconds(call, choice, kCard, {0.9, 1}), 0.99 * least)
              << channels << " " << images << " " << choice.splits;
        }
      }
    }
  }
}

// A quarter of a tile, half twice: 1 / 0.8^2 of a full one's time for products of cuBLAS, 1 / 0.9^2 for
// others.
TEST(Convolution, SmallTilesOfProductsLoseAShareOfTheirOwn) {
  const ConvCall call = strided(Phase::backward_data);
  const Choice quarter{Algorithm::col2im, 64, 64, 1};
  std::vector<double> p = start_values();
  p[ConvFamily::kSmallTile] = 0.9;
  const auto compute = [&](double small_product) {
    p[ConvFamily::kSmallProduct] = small_product;
    return ConvFamily::time<double>(call, quarter, kCard, {1, 1}, p).compute;
  };
  EXPECT_NEAR(compute(0.8) / compute(0.9), 0.9 * 0.9 / (0.8 * 0.8), 1e-12);
}

TEST(Convolution, WindowsOfPaddingHaveResidualsOfTheirOwn) {
  ConvCall call = strided(Phase::backward_weights);
  const std::uint64_t group = ConvFamily::group(call);
  call.pad_height = call.pad_width = 3;  // of filters of 1 x 1
  EXPECT_NE(ConvFamily::group(call), group);
  // A filter of 3 x 3 dilated by 6 reaches over 13 pixels: padded by 6 it holds pixels everywhere.
  ConvCall dilated = layer(Phase::backward_weights);
  dilated.dilation_height = dilated.dilation_width = 6;
  const std::uint64_t without = ConvFamily::group(dilated);
  dilated.pad_height = dilated.pad_width = 6;
  EXPECT_EQ(ConvFamily::group(dilated), without);
  ConvCall inside = layer(Phase::backward_weights);
  const std::uint64_t padded = ConvFamily::group(inside);
  inside.pad_height = inside.pad_width = 0;
  EXPECT_EQ(ConvFamily::group(inside), padded);
}

// The choices that can be the fastest at some rates include the fastest at any.
TEST(Convolution, DemandsHoldTheFastestChoice) {
  const auto p = start_values();
  for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
    for (const ConvCall& call : {layer(phase), strided(phase)}) {
      for (const double bandwidth : {0.01, 0.3, 1.0, 30.0}) {
        double least = std::numeric_limits<double>::infinity();
        for (const Choice& choice : choices(call))
          least = std::min(least, seconds(call, choice, kCard, {0.9, bandwidth}));
        EXPECT_EQ(kernel_time<ConvFamily>(call, kCard, {0.9, bandwidth}, p).parts.total, least);
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
