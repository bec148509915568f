// Collectives: sums done by hand, and what physics forbids.
#include "costmodel/communication/collective.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

// 10 us to start, 1 us a step, no other losses.
CommGroup group(std::int64_t inner, std::int64_t outer) {
  return {.inner = inner,
          .outer = outer,
          .within = BytesPerSecond(100e9),
          .switched = {},
          .network = BytesPerSecond(20e9),
          .cost = {.launch = Seconds(10e-6), .step = Seconds(1e-6), .efficiency = 1, .root = {}}};
}

double seconds(Collective collective, const CommGroup& ranks, double bytes) {
  return collective_time(collective, ranks, Bytes(bytes)).si();
}

TEST(Collective, OneRankTakesNoTime) {
  for (const auto c : {Collective::all_reduce, Collective::all_to_all, Collective::send})
    EXPECT_EQ(seconds(c, group(1, 1), 1e9), 0);
}

// Four ranks of a domain, 1 GB: all-reduce 10 us + 6 steps + 1.5 * 10 ms; all-gather 10 us + 3 steps + (3 +
// 0.45) / 4 * 10 ms.
TEST(Collective, RingByHand) {
  EXPECT_NEAR(seconds(Collective::all_reduce, group(4, 1), 1e9), 16e-6 + 15e-3, 1e-12);
  EXPECT_NEAR(seconds(Collective::all_gather, group(4, 1), 1e9), 13e-6 + 3.45 / 4 * 10e-3, 1e-12);
  EXPECT_EQ(seconds(Collective::reduce_scatter, group(4, 1), 1e9),
            seconds(Collective::all_gather, group(4, 1), 1e9));
}

// Two domains of four ranks: rings run at the smaller of 100 GB/s and 4 * 20 GB/s. 1 GB all-gathered over 8
// ranks: 10 us, 6 steps of 1 us within, one of 14 us between, (7 + 0.45) / 8 * 12.5 ms.
TEST(Collective, NetworkOfAllRanksCarriesARing) {
  EXPECT_NEAR(seconds(Collective::all_gather, group(4, 2), 1e9), 30e-6 + 7.45 / 8 * 12.5e-3, 1e-9);
}

// The part that leaves the domain: 4 of 8 parts of 1 GB at 20 GB/s is 25 ms, more than what stays.
TEST(Collective, AllToAllIsBoundByTheNetwork) {
  EXPECT_NEAR(seconds(Collective::all_to_all, group(4, 2), 1e9), 15e-6 + 14e-6 + 25e-3, 1e-9);
}

TEST(Collective, ManyDomainsReduceInTrees) {
  // 64 domains of 8, 1 MB: a ring needs 126 steps between domains, a tree 2 * 6.
  const double time = seconds(Collective::all_reduce, group(8, 64), 1e6);
  EXPECT_LT(time, 10e-6 + 14e-6 + 12 * 14e-6 + 2e6 / (0.92 * 0.5 * 100e9));
}

TEST(Collective, MoreIsNeverFaster) {
  for (std::size_t c = 0; c < kCollectiveNames.size(); ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const auto& [inner, outer] :
         {std::pair<std::int64_t, std::int64_t>{2, 1}, {8, 1}, {8, 4}, {1, 16}}) {
      double before = 0;
      for (double bytes = 64; bytes < 1e10; bytes *= 2) {
        const double time = seconds(collective, group(inner, outer), bytes);
        EXPECT_GE(time, before) << kCollectiveNames[c] << " of " << bytes;
        before = time;
        CommGroup faster = group(inner, outer);
        faster.within = faster.within * 2;
        EXPECT_LE(collective_time(collective, faster, Bytes(bytes)).si(), time);
        faster.network = faster.network * 2;
        EXPECT_LE(collective_time(collective, faster, Bytes(bytes)).si(), time);
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
