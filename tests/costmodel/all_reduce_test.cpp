#include "costmodel/communication/all_reduce.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

RankGroup group(std::int64_t ranks, double bandwidth, CollectiveCost cost = {}) {
  return {.ranks = ranks, .bandwidth = BytesPerSecond(bandwidth), .per_rank = {}, .cost = cost};
}

double time(AllReduceAlgorithm algorithm, const AllReduceRanks& ranks, double bytes) {
  return all_reduce_time(algorithm, ranks, Bytes(bytes)).si();
}

// 4 ranks, 8 MB over 1 GB/s at 80 %: 2 x 3/4 x 8 MB / 0.8 GB/s = 15 ms; 1 ms + 6 steps of 0.1 ms; 2 ms at
// 1 MiB are 4 ms at 4 MiB.
TEST(AllReduce, Ring) {
  const CollectiveCost cost{Seconds(1e-3), Seconds(1e-4), 0.8, Seconds(0), 0};
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, {group(4, 1e9, cost), {}}, 8e6), 0.015 + 0.0016, 1e-12);
  const CollectiveCost root{Seconds(0), Seconds(0), 1, Seconds(2e-3), 0};
  const double bytes = 4 * 1048576.0;
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, {group(2, 1e12, root), {}}, bytes), 4e-3 + bytes / 1e12, 1e-12);
}

// Two groups of four: within 2 x 3/4 x 8 MB / 4 GB/s = 3 ms, between 2 x 1/2 x 8 MB / 1 GB/s = 8 ms. A flat
// ring goes 2 x 7/8 x 8 MB / 1 GB/s = 14 ms over the narrower link.
TEST(AllReduce, HierarchyBeatsAFlatRing) {
  const AllReduceRanks ranks{group(4, 4e9), group(2, 1e9)};
  EXPECT_NEAR(time(AllReduceAlgorithm::hierarchical, ranks, 8e6), 11e-3, 1e-12);
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, ranks, 8e6), 14e-3, 1e-12);
  EXPECT_EQ(fastest_all_reduce(ranks, Bytes(8e6)), AllReduceAlgorithm::hierarchical);
}

// Steps of 1 ms: a ring of 16 makes 30, a tree 4 x 4, halving and doubling 2 x 4.
TEST(AllReduce, FewerStepsForSmallMessages) {
  const CollectiveCost cost{Seconds(0), Seconds(1e-3), 1, Seconds(0), 0};
  const AllReduceRanks ranks{group(1, 0), group(16, 1e9, cost)};
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, ranks, 8), 30e-3, 1e-6);
  EXPECT_NEAR(time(AllReduceAlgorithm::tree, ranks, 8), 16e-3, 1e-6);
  EXPECT_NEAR(time(AllReduceAlgorithm::halving_doubling, ranks, 8), 8e-3, 1e-6);
  EXPECT_EQ(fastest_all_reduce({group(1, 0), group(12, 1e9, cost)}, Bytes(8)), AllReduceAlgorithm::tree);
}

// Each GPU sends its 8 MB once at half of 10 GB/s, and gets as much: 1.6 ms against 2 x 7/8 x 8 / 10 = 1.4.
TEST(AllReduce, SwitchesReduceForMoreThanFour) {
  RankGroup gpus = group(8, 10e9, {Seconds(0), Seconds(0), 1, Seconds(0), 0.5});
  gpus.per_rank = BytesPerSecond(10e9);
  EXPECT_NEAR(time(AllReduceAlgorithm::in_switch, {gpus, {}}, 8e6), 1.6e-3, 1e-12);
  gpus.ranks = 4;
  EXPECT_TRUE(std::isinf(time(AllReduceAlgorithm::in_switch, {gpus, {}}, 8e6)));
}

// Two ranks, steps of 1 or 10 us, 1 GB/s. 2 kB, with flags: 2 x 1 us + 2 kB / 0.5 GB/s = 6 us, without 22 us;
// of 1 MB 2002 us against 1020 us.
TEST(AllReduce, TheFasterOfTwoProtocols) {
  const CollectiveCost cost{.launch = {},
                            .step = Seconds(1e-6),
                            .efficiency = 1,
                            .root = {},
                            .in_switch = 0,
                            .simple_step = Seconds(10e-6)};
  const AllReduceRanks ranks{group(2, 1e9, cost), {}};
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, ranks, 2e3), 6e-6, 1e-12);
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, ranks, 1e6), 1020e-6, 1e-12);
}

TEST(AllReduce, NothingForOneRank) { EXPECT_EQ(all_reduce_time({}, Bytes(1e9)), Seconds(0)); }

// More bytes, ranks, latency and less bandwidth never make it faster.
TEST(AllReduce, IsMonotonic) {
  for (const double bytes : {8.0, 1e4, 1e6, 1e8}) {
    for (const std::int64_t machines : {1, 2, 7, 64, 1000}) {
      const auto at = [&](double bandwidth, double step, double size) {
        const CollectiveCost cost{Seconds(1e-5), Seconds(step), 0.9, Seconds(1e-6), 0};
        return all_reduce_time({group(8, 1e11, cost), group(machines, bandwidth, cost)}, Bytes(size)).si();
      };
      EXPECT_GE(at(1e9, 1e-6, bytes), at(2e9, 1e-6, bytes));
      EXPECT_GE(at(1e9, 2e-6, bytes), at(1e9, 1e-6, bytes));
      EXPECT_GE(at(1e9, 1e-6, 2 * bytes), at(1e9, 1e-6, bytes));
    }
  }
}

}  // namespace
}  // namespace tbdsim
