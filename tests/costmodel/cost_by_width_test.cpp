#include "costmodel/cost_by_width.h"

#include <map>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr std::array<double, 4> kPowers{1, 2, 4, 8};

// Costs of some widths in seconds; fails for others.
struct Table {
  std::map<double, double> seconds;

  KernelCost operator()(double width) const {
    KernelCost cost;
    cost.total = cost.compute = Seconds(seconds.at(width));
    cost.provenance = width == 4 ? Provenance::measured : Provenance::modelled;
    return cost;
  }
};

double seconds_at(double width, const Table& table) {
  return cost_by_width(width, kPowers, table).total.si();
}

// Four promise less than two: two run as four do. One keeps its own time.
TEST(CostByWidth, TakesNoLongerThanAWiderCall) {
  const Table table{{{1, 2}, {2, 5}, {4, 3}, {8, 9}}};
  EXPECT_EQ(seconds_at(1, table), 2);
  EXPECT_EQ(seconds_at(2, table), 3);
  EXPECT_EQ(seconds_at(4, table), 3);
  EXPECT_EQ(seconds_at(8, table), 9);
}

// 5 lies a quarter of the way from 4 to 8: 3 + (9 - 3) / 4 s; 7 at 3 + 6 * 3 / 4.
TEST(CostByWidth, AStraightLineBetweenWidths) {
  const Table table{{{4, 3}, {8, 9}}};
  EXPECT_DOUBLE_EQ(seconds_at(5, table), 4.5);
  EXPECT_DOUBLE_EQ(seconds_at(7, table), 7.5);
  EXPECT_EQ(cost_by_width(5, kPowers, table).provenance, Provenance::measured) << "nearer to 4";
  EXPECT_EQ(cost_by_width(7, kPowers, table).provenance, Provenance::modelled);
  EXPECT_DOUBLE_EQ(seconds_at(6, {{{4, 9}, {8, 3}}}), 3) << "as the wider one on both sides";
}

TEST(CostByWidth, BeyondTheLastWidthAsItIs) { EXPECT_EQ(seconds_at(9, {{{9, 1}}}), 1); }

}  // namespace
}  // namespace tbdsim
