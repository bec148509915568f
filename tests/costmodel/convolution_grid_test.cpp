// The tiles and splits that a library can choose for a convolution, by hand.
#include "costmodel/families/convolution_grid.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include "costmodel/families/convolution.h"

namespace tbdsim {
namespace {

using testing::Each;
using testing::Field;
using testing::Ne;

constexpr Hardware kCard{.sm_count = 30, .peak = 12e12, .bandwidth = 500e9, .clock = 1.6e9};

std::vector<Choice> choices(const ConvCall& call, const Hardware& hardware) {
  std::vector<Choice> all;
  ConvFamily::for_each_choice(call, hardware, [&](const Choice& choice) { all.push_back(choice); });
  return all;
}

void expect_blocks(const ConvCall& call, const Choice& choice, double blocks, double depth) {
  const BlockGrid grid = conv_grid(call, choice);
  EXPECT_DOUBLE_EQ(grid.blocks, blocks);
  EXPECT_DOUBLE_EQ(grid.depth, depth);
}

// 16 channels and filters of 3 x 3, 1024 images of 64 x 64: 144 x 16 results, 4 M deep. Tiles of 64 x 32 are
// 3 blocks, of which 108 SMs hold 16 each: 3 * 1024 = 3072 is the first of 3, 6, 12, ... that is 1728 at
// least, 3 * 256 the first that is 432, what 27 SMs hold.
TEST(Convolution, SplitsTheDepthUntilTheGpuIsFull) {
  ConvCall call = ConvCall{.phase = Phase::backward_weights, .limits = {}};
  call.images = 1024;
  call.channels = call.filters = 16;
  call.height = call.width = call.out_height = call.out_width = 64;
  call.kernel_height = call.kernel_width = 3;
  call.pad_height = call.pad_width = 1;
  const auto most = [&](double sm_count) {
    Hardware card = kCard;
    card.sm_count = sm_count;
    std::uint16_t splits = 1;
    for (const Choice& choice : choices(call, card)) {
      if (choice.tile_m == 64 && choice.tile_n == 32) splits = std::max(splits, choice.splits);
    }
    return splits;
  };
  EXPECT_EQ(most(108), 1024);
  EXPECT_EQ(most(27), 256);
  EXPECT_EQ(kLeastSplitDepth * 16'384, 1024 * 64 * 64);  // no part is less deep, however many the SMs
  EXPECT_EQ(most(20'000), 16'384);
}

// One output of each image of 7 x 7 pixels: the implicit product of the data pass multiplies each of 49 taps
// with each of 49 pixels, col2im's each tap once. 64 images: 128 x 128 tiles of 3136 x 512 results, 4096 * 49
// deep, are 25 * 4; of 512 * 49 = 25,088 x 64, 4096 deep, 196 * 1 with half of each tile in use.
TEST(Convolution, SpreadsFewOutputsByColumns) {
  ConvCall call = ConvCall{.phase = Phase::backward_data, .limits = {}};
  call.images = 64;
  call.channels = 512;
  call.filters = 4096;
  call.height = call.width = call.kernel_height = call.kernel_width = 7;
  call.out_height = call.out_width = 1;
  call.pad_height = call.pad_width = 0;
  expect_blocks(call, {Algorithm::implicit_gemm, 128, 128, 1}, 100, 4096 * 49);
  expect_blocks(call, {Algorithm::col2im, 128, 128, 1}, 196, 4096);
  Hardware card = kCard;
  card.tensor_cores = true;
  std::vector<double> p;
  for (const Parameter& parameter : ConvFamily::parameters) p.push_back(parameter.start);
  EXPECT_EQ(kernel_time<ConvFamily>(call, card, {0.9, 1}, p).choice.algorithm, Algorithm::col2im);
  call.out_height = call.out_width = 7;  // as many outputs as inputs
  call.pad_height = call.pad_width = 3;
  EXPECT_THAT(choices(call, card), Each(Field(&Choice::algorithm, Ne(Algorithm::col2im))));
}

}  // namespace
}  // namespace tbdsim
