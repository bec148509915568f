// Convolutions on tensor cores: padded channels and their copies, tiles, waits at part of the rate.
#include <vector>

#include <gmock/gmock.h>

#include "tests/costmodel/convolution_layer.h"

namespace tbdsim {
namespace {

using test::kCard;
using test::kImplicit;
using test::layer;
using test::start_values;

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

}  // namespace
}  // namespace tbdsim
