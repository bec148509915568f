#include "calibrate/measure/statistics/throttle.h"

#include <gtest/gtest.h>

namespace tbdsim::measure {
namespace {

TEST(ThrottleWatch, IsDueAtOnceThenEveryTwentyPointsOrTenSeconds) {
  ThrottleWatch watch;
  EXPECT_TRUE(watch.due(0));
  watch.add(1e-3, 0);
  EXPECT_FALSE(watch.due(1));
  for (int i = 0; i < 19; ++i) watch.count_point();
  EXPECT_FALSE(watch.due(1));
  watch.count_point();
  EXPECT_TRUE(watch.due(1));
  watch.add(1e-3, 1);
  EXPECT_FALSE(watch.due(10.9));
  EXPECT_TRUE(watch.due(11));
}

TEST(ThrottleWatch, MeasuresSlowdownAgainstTheBest) {
  ThrottleWatch watch;
  EXPECT_EQ(watch.slowdown(), 0);  // nothing known
  watch.add(2e-3, 0);
  EXPECT_EQ(watch.slowdown(), 1);
  watch.add(1e-3, 1);  // the card woke up: a new best
  EXPECT_EQ(watch.slowdown(), 1);
  watch.add(1.5e-3, 2);
  EXPECT_DOUBLE_EQ(watch.slowdown(), 1.5);
}

TEST(ThrottleWatch, PausesThreeTimesThenGivesUpUntilTheCardRecovers) {
  ThrottleWatch watch;
  watch.add(1e-3, 0);
  EXPECT_FALSE(watch.should_pause());
  watch.add(1.09e-3, 1);
  EXPECT_FALSE(watch.should_pause());  // within 10 %
  for (int i = 0; i < 3; ++i) {
    watch.add(1.2e-3, 2);
    EXPECT_TRUE(watch.should_pause());
    watch.count_pause();
  }
  EXPECT_FALSE(watch.should_pause());
  watch.add(1e-3, 3);
  watch.add(1.2e-3, 4);
  EXPECT_TRUE(watch.should_pause());  // a new episode
}

}  // namespace
}  // namespace tbdsim::measure
