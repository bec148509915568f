// Convolutions: grids, bytes and choices of each algorithm, by hand.
#include "costmodel/families/convolution.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>

namespace tbdsim {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::Ne;
using testing::Not;

constexpr Hardware kCard{.sm_count = 30, .peak = 12e12, .bandwidth = 500e9, .clock = 1.6e9};
constexpr Choice kImplicit{Algorithm::implicit_gemm, 128, 64, 1};

std::vector<double> start_values() {
  std::vector<double> values;
  for (const Parameter& parameter : ConvFamily::parameters) values.push_back(parameter.start);
  return values;
}

// 8 images of 64 x 28 x 28, 96 filters of 3 x 3 that keep the size.
ConvCall layer(Phase phase) {
  return {.phase = phase,
          .images = 8,
          .channels = 64,
          .height = 28,
          .width = 28,
          .filters = 96,
          .out_height = 28,
          .out_width = 28,
          .kernel_height = 3,
          .kernel_width = 3,
          .pad_height = 1,
          .pad_width = 1,
          .limits = {}};
}

// The same with a stride of 2 and 1 x 1 filters.
ConvCall strided(Phase phase) {
  ConvCall call = layer(phase);
  call.out_height = call.out_width = 14;
  call.kernel_height = call.kernel_width = 1;
  call.stride_height = call.stride_width = 2;
  call.pad_height = call.pad_width = 0;
  return call;
}

std::vector<Choice> choices(const ConvCall& call, const Hardware& hardware = kCard) {
  std::vector<Choice> all;
  ConvFamily::for_each_choice(call, hardware, [&](const Choice& choice) { all.push_back(choice); });
  return all;
}

Estimate<ConvFamily> fastest(const ConvCall& call, const Hardware& hardware = kCard) {
  return kernel_time<ConvFamily>(call, hardware, {0.9, 1}, start_values());
}

double seconds(const ConvCall& call, const Choice& choice, const Hardware& hardware,
               const AchievedFraction<double>& sustained) {
  const auto p = start_values();
  return ConvFamily::time<double>(call, choice, hardware, sustained, p).total;
}

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

// 3 channels on tensor cores: a product of depth 3 * 9 = 27 at the share `unaligned` of the rate, with 8 / 3
// of the multiply-adds; or, where channels are padded, the product of 8 channels, of depth 72. Either has a
// prologue of p steps: (72 + p) / ((27 + p) * 8 / 3 / unaligned).
TEST(Convolution, PadsOddChannelsForTensorCores) {
  Hardware tensor = kCard;
  tensor.tensor_cores = true;
  ConvCall call = layer(Phase::forward);
  const std::vector<double> p = start_values();
  const auto work = [&](const Hardware& hardware) {
    return ConvFamily::time<double>(call, kImplicit, hardware, {1, 1}, p).compute;
  };
  call.channels = 3;
  const double unpadded = work(tensor);
  EXPECT_NEAR(unpadded / work(kCard), 4 / 3.0 / p[ConvFamily::kUnaligned], 1e-12);  // 4 channels of TF32
  call.limits.pads_channels = PadsChannels::always;
  const double prologue = p[ConvFamily::kPrologue];
  const double expected = (36 + prologue) / ((27 + prologue) * 4 / 3 / p[ConvFamily::kUnaligned]);
  EXPECT_NEAR(work(tensor) / unpadded, expected, 1e-12);
}

// A GPU that multiplies at half its generation's rate waits half as long, in operations: the prologue of a
// block is half as many steps, and a tile of half the area, which takes 1 / small_tile as long as its share
// of a full one at the full rate, takes (1 + 1 / small_tile) / 2.
TEST(Convolution, HalfRateWaitsHalfAsLong) {
  Hardware full = kCard;
  full.tensor_cores = true;
  full.sm_count = 1;
  Hardware half = full;
  half.rate_share = 0.5;
  const ConvCall call = layer(Phase::forward);
  std::vector<double> p = start_values();
  p[ConvFamily::kLatency] = 0;
  const auto work = [&](const Hardware& hardware) {
    return ConvFamily::time<double>(call, kImplicit, hardware, {1, 1}, p).compute;
  };
  const double depth = call.channels * 9, prologue = p[ConvFamily::kPrologue];
  const double tile = (1 + p[ConvFamily::kSmallTile]) / 2;
  const double share =
      (1 + p[ConvFamily::kForward]) / 2;  // 0.95 of the full rate, 1 / (1 + 0.5 * 0.05 / 0.95) of half
  EXPECT_NEAR(work(half) / work(full), tile * share * (depth + prologue / 2) / (depth + prologue), 1e-12);
}

TEST(Convolution, SmallTilesLoseLessThanWhereTheyWereTimed) {
  Hardware timed = kCard;
  timed.tensor_cores = true;
  timed.sm_count = 1;
  Hardware later = timed;
  later.tile_loss = 2.0 / 3;
  std::vector<double> p = start_values();
  p[ConvFamily::kLatency] = 0;
  p[ConvFamily::kSmallTile] = 0.6;
  const auto work = [&](const Hardware& hardware) {
    return ConvFamily::time<double>(layer(Phase::forward), kImplicit, hardware, {1, 1}, p).compute;
  };
  // Half a tile: 1 / 0.6 = 1 + 2/3 of its share of a full one; 1 + 4/9 where two thirds of the loss are left.
  EXPECT_NEAR(work(later) / work(timed), (1 + 4.0 / 9) / (1 + 2.0 / 3), 1e-12);
}

// `half`: elements of 2 bytes alone are padded.
TEST(Convolution, PadsChannelsOfHalfPrecision) {
  ConvCall call = layer(Phase::forward);
  call.channels = 3;
  call.filters = 97;
  call.limits.pads_channels = PadsChannels::half;
  EXPECT_EQ(ConvSizes(call).channels, 3);
  call.element_bytes = 2;
  EXPECT_EQ(ConvSizes(call).channels, 8);
  EXPECT_EQ(ConvSizes(call).filters, 104);
  EXPECT_EQ(ConvFamily::flops(call),
            2.0 * 8 * 28 * 28 * 97 * 3 * 9);  // those of the call, not of its padding
}

// Sums of 18 channels, padded to 24, go 32 deep for each of 9 taps in half precision; those of 3 and of one
// tap do not. A gradient by the input sums over filters: 97 of them go 128 deep.
TEST(Convolution, EndsTilesOfHalfPrecisionWithTheTap) {
  const auto depth = [](Phase phase, double channels, double bytes, double taps) {
    ConvCall call = layer(phase);
    call.channels = channels;
    call.filters = 97;
    call.element_bytes = bytes;
    call.kernel_height = call.kernel_width = taps;
    call.limits.pads_channels = PadsChannels::always;
    return ConvSizes(call).product.depth;
  };
  EXPECT_EQ(depth(Phase::forward, 18, 2, 3), 32 * 9);
  EXPECT_EQ(depth(Phase::forward, 36, 2, 3), 64 * 9);
  EXPECT_EQ(depth(Phase::forward, 64, 2, 3), 64 * 9);
  EXPECT_EQ(depth(Phase::forward, 3, 2, 3), 8 * 9);
  EXPECT_EQ(depth(Phase::forward, 18, 2, 1), 24);
  EXPECT_EQ(depth(Phase::forward, 18, 4, 3), 20 * 9);  // TF32
  EXPECT_EQ(depth(Phase::backward_data, 18, 2, 3), 128 * 9);
  EXPECT_EQ(depth(Phase::backward_weights, 18, 2, 3), 8 * 28 * 28);
}

// 3 channels of 28 x 28 NHWC pixels become 8, 97 filters 104: both images are read and written in both forms;
// filters of one tap need no copies.
TEST(Convolution, CopiesImagesToPadChannels) {
  ConvCall call = layer(Phase::forward);
  call.channels = 3;
  call.filters = 97;
  call.element_bytes = 2;
  EXPECT_EQ(ConvSizes(call).padding_bytes, 0);
  call.limits.pads_channels = PadsChannels::half;
  EXPECT_EQ(ConvSizes(call).padding_bytes, 0);  // NCHW: the copies to NHWC pad
  call.channels_last = true;
  EXPECT_EQ(ConvSizes(call).padding_bytes, 2.0 * 8 * 784 * (3 + 8 + 97 + 104));
  call.kernel_height = call.kernel_width = 1;
  EXPECT_EQ(ConvSizes(call).padding_bytes, 0);
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

// 3 channels of 4 bytes on tensor cores are 4, at 0.3 of the rate: compute takes 4 / 3 / 0.3 times as long.
TEST(Convolution, TensorCoresPadChannels) {
  Hardware tensor = kCard;
  tensor.tensor_cores = true;
  ConvCall first = layer(Phase::forward);
  first.channels = 3;
  const auto p = start_values();
  const double plain = ConvFamily::time<double>(first, kImplicit, kCard, {1, 1}, p).compute;
  const double padded = ConvFamily::time<double>(first, kImplicit, tensor, {1, 1}, p).compute;
  EXPECT_DOUBLE_EQ(padded / plain, 4 / 3.0 / p[ConvFamily::kUnaligned]);
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
