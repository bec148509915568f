#include "calibrate/measure/plan/schedule.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tbdsim::measure {
namespace {

std::vector<PlanPoint> points(int count, double value) {
  std::vector<PlanPoint> made;
  for (int i = 1; i <= count; ++i) made.push_back({.op = "gemm", .shape = {.m = i}, .value = value});
  return made;
}

std::vector<std::int64_t> order(const std::vector<PlanPoint>& made) {
  std::vector<std::int64_t> sizes;
  for (const PlanPoint& point : made) sizes.push_back(point.shape.m);
  return sizes;
}

TEST(Ordered, MostValuableFirst) {
  std::vector<PlanPoint> mixed = points(20, 1);
  for (PlanPoint& point : points(20, 8)) mixed.push_back(point);
  mixed.push_back({.op = "launch", .value = 1e6});
  const auto made = ordered(mixed, 3);
  EXPECT_EQ(made[0].op, "launch");
  for (std::size_t i = 1; i <= 20; ++i) EXPECT_EQ(made[i].value, 8);
  for (std::size_t i = 21; i <= 40; ++i) EXPECT_EQ(made[i].value, 1);
}

TEST(Ordered, ShufflesWithinAnOctaveBySeed) {
  const auto plain = points(100, 1);
  const auto one = order(ordered(plain, 1));
  EXPECT_EQ(one, order(ordered(plain, 1)));
  EXPECT_NE(one, order(ordered(plain, 2)));
  EXPECT_NE(one, order(plain));
  auto sorted = one;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, order(plain));  // nothing lost
}

TEST(Ordered, TheOrderIsTheSameOnEveryPlatform) {
  // mt19937_64 is fixed by the standard and the shuffle is written out; the numbers are those of an
  // independent Python program that does the same.
  EXPECT_EQ(order(ordered(points(8, 1), 1)), (std::vector<std::int64_t>{5, 7, 4, 6, 2, 8, 3, 1}));
}

TEST(Ordered, TakesZeroAndNegativeValuesLast) {
  std::vector<PlanPoint> mixed = points(1, 0);
  mixed.push_back({.op = "add", .value = -1});
  mixed.push_back({.op = "relu", .value = 1e-9});
  EXPECT_EQ(ordered(mixed, 1)[0].op, "relu");
}

TEST(TimeBox, WithoutALimitEverythingFits) { EXPECT_TRUE(TimeBox(0).fits(1e9, 1e9)); }

TEST(TimeBox, RefusesWhatWouldEndTooLate) {
  const TimeBox box(60);
  EXPECT_TRUE(box.fits(10, 50));
  EXPECT_FALSE(box.fits(10.1, 50));
}

TEST(TimeBox, LearnsThatPointsTakeTwiceTheGuess) {
  TimeBox box(60);
  for (int i = 0; i < 100; ++i) box.took(1, 2);
  // (200 + 5) / (100 + 5): the five seconds assumed at the start still damp a little.
  EXPECT_NEAR(box.correction(), 205.0 / 105.0, 1e-12);
  EXPECT_FALSE(box.fits(10, 45));
  EXPECT_TRUE(box.fits(10, 40));
}

}  // namespace
}  // namespace tbdsim::measure
