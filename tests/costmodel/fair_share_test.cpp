#include "costmodel/communication/fair_share.h"

#include <cmath>

#include <gmock/gmock.h>

namespace tbdsim {
namespace {
using testing::ElementsAre;

std::vector<double> rates(const std::vector<double>& capacities, const std::vector<Flow>& flows) {
  std::vector<BytesPerSecond> links;
  for (const double capacity : capacities) links.emplace_back(capacity);
  std::vector<double> out;
  for (const BytesPerSecond& rate : max_min_fair(links, flows)) out.push_back(rate.si());
  return out;
}

// Link 0 of 10 is shared by three, 10 / 3 each; what the first leaves of link 1 of 12 goes to the fourth.
TEST(FairShare, TheNarrowestLinkFillsFirst) {
  const std::vector<double> shares = rates({10, 12}, {{{0, 1}}, {{0}}, {{0}}, {{1}}});
  EXPECT_NEAR(shares[0], 10.0 / 3, 1e-12);
  EXPECT_NEAR(shares[2], 10.0 / 3, 1e-12);
  EXPECT_NEAR(shares[3], 12 - 10.0 / 3, 1e-12);
}

// A copy that is written to a memory and read again loads it twice.
TEST(FairShare, ALinkMayBeLoadedTwice) { EXPECT_THAT(rates({8}, {{{0, 0}}}), ElementsAre(4)); }

TEST(FairShare, WithoutALinkThereIsNoLimit) {
  EXPECT_TRUE(std::isinf(rates({8}, {{{}}})[0]));
  EXPECT_TRUE(rates({8}, {}).empty());
}

// No link carries more than it can, and every flow has a full link on which no flow is faster.
TEST(FairShare, IsMaxMinFair) {
  const std::vector<double> capacities{7, 3, 5, 11, 2};
  const std::vector<Flow> flows{{{0, 1}}, {{1, 2}}, {{0, 2, 3}}, {{3}}, {{3, 4}}, {{0}}, {{2}}};
  const std::vector<double> shares = rates(capacities, flows);
  std::vector<double> loads(capacities.size());
  std::vector<double> fastest(capacities.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const LinkIndex link : flows[f].links) {
      loads[static_cast<std::size_t>(link)] += shares[f];
      fastest[static_cast<std::size_t>(link)] = std::max(fastest[static_cast<std::size_t>(link)], shares[f]);
    }
  }
  for (std::size_t i = 0; i < capacities.size(); ++i) EXPECT_LE(loads[i], capacities[i] + 1e-9);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    bool held = false;
    for (const LinkIndex link : flows[f].links) {
      const auto i = static_cast<std::size_t>(link);
      held = held || (loads[i] > capacities[i] - 1e-9 && shares[f] >= fastest[i] - 1e-9);
    }
    EXPECT_TRUE(held) << "flow " << f;
  }
}

}  // namespace
}  // namespace tbdsim
