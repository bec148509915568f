// The card of these tests: 10 SMs, 1 Tflop/s, 100 GB/s, 1 MB of L2, 1 GHz. An L2 rate of 0.5 x 64 B x 10 SMs
// x 1 GHz = 320 GB/s.
#include "costmodel/families/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "costmodel/families/batched_gemm.h"
#include "costmodel/families/families.h"

namespace tbdsim {
namespace {

const Hardware kCard{
    .sm_count = 10, .peak = 1e12, .bandwidth = 1e11, .l2_bytes = 1e6, .clock = 1e9, .compute_capability = 80};
const AchievedFraction<double> kFull{1, 1};
constexpr Choice kWhole{Algorithm::gemm, 128, 128, 1};

// No latency to hide, prologue 100 steps, half of every rate, a launch of 1 us, a split of 2 us.
std::array<double, kParameterCount<GemmFamily>> parameters() {
  std::array<double, kParameterCount<GemmFamily>> p{};
  p[TileParameter::kEfficiency] = 0.5;
  p[TileParameter::kSmallTile] = 0.8;
  p[TileParameter::kLatency] = 1e-9;
  p[TileParameter::kPrologue] = 100;
  p[TileParameter::kBandwidth] = 0.5;
  p[TileParameter::kLaunch] = 1e-6;
  p[TileParameter::kStrided] = 1;
  p[TileParameter::kCache] = 0.5;
  p[TileParameter::kResident] = 0.5;
  p[TileParameter::kUnaligned] = 0.75;
  p[TileParameter::kFarRow] = 3'200;
  p[GemmFamily::kSplit] = 2e-6;
  return p;
}

TimeParts<double> time(const GemmCall& call, const Choice& choice, const Hardware& card = kCard,
                       const AchievedFraction<double>& sustained = kFull) {
  const auto p = parameters();
  return GemmFamily::time<double>(call, choice, card, sustained, p);
}

GemmCall square() { return {.m = 256, .n = 256, .k = 400}; }

// 4 blocks on 10 SMs: one wave of 2 x 128 x 128 x (400 + 100) flop at 1e11 x 0.5 flop/s on an SM = 327.68 us.
// A and B 409,600 bytes each, C 262,144; rows of B lie along k, half (400 / 800) of it is counted once more:
// 1,286,144 bytes at 50 GB/s.
TEST(GemmTime, ComputesInWavesOfTilesAndReadsRowsAlongKTwice) {
  const TimeParts<double> parts = time(square(), kWhole);
  EXPECT_NEAR(parts.compute, 327.68e-6, 1e-12);
  EXPECT_NEAR(parts.memory, 25.72288e-6, 1e-12);
  EXPECT_NEAR(parts.total, 1e-6 + std::hypot(327.68e-6, 25.72288e-6), 1e-12);
}

// Rows of A are of m numbers, those of B of k: 257 or 401 floats are no multiple of 16 bytes, 0.75 of the
// rate.
TEST(GemmTime, RowsThatAreNoMultiplesOf16BytesAreSlower) {
  GemmCall call{.m = 253, .n = 256, .k = 400};
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6 / 0.75, 1e-12);
  call.transpose_a = true;  // rows of 400
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6, 1e-12);
  call.n = 253;
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6, 1e-12);
  call.transpose_b = true;  // rows of 253
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6 / 0.75, 1e-12);
  call.element_bytes = 16;
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6, 1e-12);
}

// Half precision on tensor cores, 50 TFLOP/s, of an A100's sort: 10 SMs at 1 GHz feed 1,120 operations a
// clock and SM with copies of 4 bytes, 620 with loads and 400 with stores of 2 bytes; half as many of TF32
// with any copies below 16 bytes.
TEST(GemmTime, NarrowLoadsFeedNoMoreThanTheyCan) {
  Hardware tensor = kCard;
  tensor.peak = 1e14;
  tensor.tensor_cores = true;
  const auto compute = [&](double m, double k, double bytes, const Hardware& card) {
    GemmCall call{.m = m, .n = 4'096, .k = k, .transpose_a = true};
    call.element_bytes = call.output_bytes = bytes;
    return time(call, kWhole, card).compute;
  };
  const double aligned = compute(4'096, 400, 2, tensor);
  EXPECT_DOUBLE_EQ(compute(4'092, 400, 2, tensor) / aligned, 50 / 11.2);
  EXPECT_DOUBLE_EQ(compute(4'095, 400, 2, tensor) / aligned, 50 / 4.0) << "rows of the result";
  EXPECT_DOUBLE_EQ(compute(4'096, 401, 2, tensor) / aligned, 50 / 6.2 * 501 / 500) << "of the operands";
  for (const double m : {4'095.0, 4'094.0})
    EXPECT_DOUBLE_EQ(compute(m, 400, 4, tensor) / compute(4'096, 400, 4, tensor), 50 / 5.6) << m;
  EXPECT_DOUBLE_EQ(compute(1, 400, 2, tensor), compute(1, 400, 2, kCard) / 100) << "a vector";
  Hardware volta = tensor;
  volta.compute_capability = 70;
  EXPECT_DOUBLE_EQ(compute(4'095, 400, 2, volta), aligned);
}

// Tiles of 32 x 32 reach a third of the rate, of 64 x 64 twice as much.
TEST(GemmTime, SmallTilesReuseNarrowLoadsLess) {
  Hardware tensor = kCard;
  tensor.tensor_cores = true;
  const auto rate = [&](double m, double n, double k) {
    return rate_of_narrow_loads({.m = m, .n = n, .k = k, .element_bytes = 2}, tensor);
  };
  EXPECT_DOUBLE_EQ(rate(4'096, 128, 49), 620e10);
  EXPECT_DOUBLE_EQ(rate(32, 49, 49), 620e10 * 32 / 96);
  EXPECT_DOUBLE_EQ(rate(50, 49, 49), 620e10 * 64 / 96);
  EXPECT_DOUBLE_EQ(rate(49, 32, 49), 620e10 * 32 / 96)
      << "the loads of operands rather than the stores of results";
  EXPECT_DOUBLE_EQ(rate(4'095, 4'096, 48), 400e10);
}

// 0.62 of the rate where the rows of neither operand run along k; one of them may come from registers at 0.9.
TEST(GemmTime, OperandsAcrossK) {
  Hardware hopper = kCard;
  hopper.across_k = 0.62;
  const auto compute = [&](bool transpose_a, bool transpose_b) {
    GemmCall call = square();
    call.transpose_a = transpose_a;
    call.transpose_b = transpose_b;
    return time(call, kWhole, hopper).compute;
  };
  EXPECT_NEAR(compute(true, false), 327.68e-6, 1e-12);
  EXPECT_NEAR(compute(false, false), 327.68e-6 / 0.9, 1e-12);
  EXPECT_NEAR(compute(true, true), 327.68e-6 / 0.9, 1e-12);
  EXPECT_NEAR(compute(false, true), 327.68e-6 / 0.62, 1e-12);
  hopper.across_k = 1;
  EXPECT_NEAR(compute(false, true), 327.68e-6, 1e-12) << "other GPUs";
}

// Both operands have rows of 1,600 bytes along k, half of what halves the rate: 1.5 of the time, before
// Volta.
TEST(GemmTime, LongRowsOfBothOperandsAreSlowBeforeVolta) {
  GemmCall call = square();
  call.transpose_a = true;
  Hardware pascal = kCard;
  pascal.compute_capability = 61;
  EXPECT_NEAR(time(call, kWhole, pascal).compute, 1.5 * 327.68e-6, 1e-12);
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6, 1e-12);
  EXPECT_NEAR(time(square(), kWhole, pascal).compute, 327.68e-6, 1e-12) << "rows of A run along m";
}

// Half the tile: 8 blocks, still one wave, of half the work at 0.8 of the efficiency.
TEST(GemmTime, SmallerTilesAreLessEfficient) {
  EXPECT_NEAR(time(square(), {Algorithm::gemm, 64, 128, 1}).compute, 327.68e-6 / 2 / 0.8, 1e-12);
}

// 11 blocks on 10 SMs take two waves.
TEST(GemmTime, ABlockMoreThanSMsCostsAWave) {
  GemmCall call{.m = 128 * 10, .n = 128, .k = 400};
  EXPECT_NEAR(time(call, kWhole).compute, 327.68e-6, 1e-12);
  call.m += 4;
  EXPECT_NEAR(time(call, kWhole).compute, 2 * 327.68e-6, 1e-12);
}

// 8 blocks of 200 + 100 steps: 2 x 16,384 x 300 / 5e10 s. Two parts of 65,536 results are written and read, 8
// bytes each, through the L2 cache: 1,048,576 / 3.2e11 s.
TEST(GemmTime, PartsOfASplitPassTheCache) {
  const TimeParts<double> parts = time(square(), {Algorithm::split_k, 128, 128, 2});
  EXPECT_NEAR(parts.compute, 196.608e-6, 1e-12);
  EXPECT_NEAR(parts.overhead, 1e-6 + 2e-6 + 3.2768e-6, 1e-12);
}

// z = 1,081,344 / (0.5 x 1e6), miss = z^2 / (1 + z^2) = 0.82386; the rest at 320 GB/s.
TEST(GemmTime, ARepeatedCallFindsSomeOperandsInTheCache) {
  GemmCall call = square();
  call.hot = true;
  const double z = 1'081'344 / 5e5, miss = z * z / (1 + z * z);
  EXPECT_NEAR(time(call, kWhole).memory, miss * 25.72288e-6 + (1 - miss) * 1'081'344 / 3.2e11, 1e-12);
}

// Both operands have rows along k: (819,200 x 1.5 + 262,144) bytes at 50 GB/s = 29.81888 us.
TEST(GemmTime, RowsAlongTheDepthAreReadInPieces) {
  GemmCall call = square();
  call.transpose_a = true;
  EXPECT_NEAR(time(call, kWhole).memory, 29.81888e-6, 1e-12);
}

// Four experts of `square` with 1 ms each at least: the square root of the sum of squares.
TEST(GroupedGemmTime, ExpertsTakeALeastTimeEach) {
  GemmCall call = square();
  call.batch = 4;
  call.grouped = true;
  std::array<double, kParameterCount<GroupedGemmFamily>> p;
  std::transform(GroupedGemmFamily::parameters.begin(), GroupedGemmFamily::parameters.end(), p.begin(),
                 [](const Parameter& parameter) { return parameter.start; });
  const auto total = [&](double expert) {
    p[GroupedGemmFamily::kExpert] = expert;
    return kernel_time<GroupedGemmFamily>(call, kCard, {1, 1}, p).parts;
  };
  const TimeParts<double> without = total(0);
  const double work = without.total - without.overhead;
  EXPECT_NEAR(total(1e-3).total, without.overhead + std::hypot(work, 4e-3), 1e-12);
  EXPECT_TRUE(belongs_to<GroupedGemmFamily>(call));
  EXPECT_FALSE(belongs_to<BatchedGemmFamily>(call));
  call.grouped = false;
  EXPECT_FALSE(belongs_to<GroupedGemmFamily>(call));
}

template <class Family>
std::set<std::pair<int, int>> tiles_of(const GemmCall& call, const Hardware& card) {
  std::set<std::pair<int, int>> tiles;
  Family::for_each_choice(call, card, [&](const Choice& c) { tiles.insert({c.tile_m, c.tile_n}); });
  return tiles;
}

std::set<int> splits_of(const GemmCall& call, const Hardware& card) {
  std::set<int> splits;
  GemmFamily::for_each_choice(call, card, [&](const Choice& c) { splits.insert(c.splits); });
  return splits;
}

// 32 blocks are less than the four waves that 100 SMs allow; 200 / 4 is below 64, the shortest part.
TEST(GemmTime, ADeepProductIsSplitIntoPartsOfAtLeast64) {
  Hardware card = kCard;
  card.sm_count = 100;
  EXPECT_EQ(splits_of({.m = 16, .n = 16, .k = 100'000}, card),
            (std::set<int>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}));
  const GemmCall shallow{.m = 16, .n = 16, .k = 200};
  EXPECT_EQ(splits_of(shallow, card), (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(tile_grid(shallow, {Algorithm::split_k, 32, 32, 4}).depth, 64);
  EXPECT_EQ(splits_of({.m = 16, .n = 16, .k = 64}, card), (std::set<int>{1}));
}

// A part of 64 takes as long where the product has less to split, so that no sum is cheaper for being longer.
// Rows are multiples of 16 bytes: those that are not take longer than the next larger ones.
TEST(GemmTime, LargerProductsNeverTakeLess) {
  const auto p = parameters();
  for (const double m : {1.0, 20.0, 64.0, 500.0}) {
    double before = 0;
    for (double k = 16; k < 5'000; k += 48) {
      const double time = kernel_time<GemmFamily>({.m = m, .n = 40, .k = k}, kCard, kFull, p).parts.total;
      EXPECT_GE(time * (1 + 1e-12), before) << m << " " << k;
      before = time;
    }
  }
  double before = 0;
  for (double m = 4; m < 400; m += 4) {
    const double time = kernel_time<GemmFamily>({.m = m, .n = 40, .k = 1'000}, kCard, kFull, p).parts.total;
    EXPECT_GE(time * (1 + 1e-12), before) << m;
    before = time;
  }
}

TEST(BatchedGemmTime, PascalHasOneTileAndNoSplit) {
  Hardware card = kCard;
  card.compute_capability = 61;
  const GemmCall call{.m = 64, .n = 64, .k = 4096, .batch = 2};
  EXPECT_EQ(tiles_of<BatchedGemmFamily>(call, card), (std::set<std::pair<int, int>>{{128, 64}}));
  BatchedGemmFamily::for_each_choice(call, card, [](const Choice& c) { EXPECT_EQ(c.splits, 1); });
}

double least(const GemmCall& call, const Hardware& card = kCard) {
  const auto p = parameters();
  return kernel_time<GemmFamily>(call, card, kFull, p).parts.total;
}

// Twice the bandwidth; twice the arithmetic; that on twice the SMs.
std::array<Hardware, 3> better_cards() {
  std::array<Hardware, 3> cards = {kCard, kCard, kCard};
  cards[0].bandwidth *= 2;
  cards[1].peak *= 2;
  cards[2].peak *= 2;
  cards[2].sm_count *= 2;
  return cards;
}

// For any call: twice of a size takes longer, twice the card does not.
TEST(GemmTime, GrowsWithTheCallAndFallsWithTheCard) {
  for (const double m : {1.0, 33.0, 200.0, 3000.0}) {
    for (const double n : {1.0, 48.0, 500.0}) {
      for (const double k : {7.0, 130.0, 5000.0}) {
        const GemmCall call{.m = m, .n = n, .k = k};
        const double time = least(call);
        EXPECT_GE(least({.m = 2 * m, .n = n, .k = k}), time);
        EXPECT_GE(least({.m = m, .n = 2 * n, .k = k}), time);
        EXPECT_GE(least({.m = m, .n = n, .k = 2 * k}), time);
        for (const Hardware& better : better_cards()) EXPECT_LE(least(call, better), time);
      }
    }
  }
  for (const Hardware& better : better_cards()) EXPECT_LT(least(square(), better), least(square()));
}

}  // namespace
}  // namespace tbdsim
