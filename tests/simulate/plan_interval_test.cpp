// Intervals of layouts, against sums done by hand.
#include <cmath>

#include <gtest/gtest.h>

#include "simulate/plan/interval.h"

namespace tbdsim {
namespace {

LayoutPrediction step_of_ten_seconds(double waiting) {
  LayoutPrediction p;
  p.step = Seconds(10);
  p.parts.sends = Seconds(waiting);
  return p;
}

TEST(StepInterval, IsWiderTheMoreWaits) {
  const DecoderShape dense;
  const double computes = relative_deviation(step_of_ten_seconds(0), dense);
  const double waits = relative_deviation(step_of_ten_seconds(5), dense);
  // Squares add: half of a step that waits has four times the variance of a quarter.
  const double quarter = relative_deviation(step_of_ten_seconds(2.5), dense);
  EXPECT_NEAR(waits * waits - computes * computes, 4 * (quarter * quarter - computes * computes), 1e-12);
  EXPECT_GT(waits, computes);
}

TEST(StepInterval, IsWiderForExperts) {
  DecoderShape mixture;
  mixture.experts = 8;
  EXPECT_GT(relative_deviation(step_of_ten_seconds(1), mixture),
            relative_deviation(step_of_ten_seconds(1), DecoderShape{}));
}

// Of a normal distribution of ln(time) 80 % lie within 1.2816 deviations.
TEST(StepInterval, HoldsEightyPercent) {
  const LayoutPrediction p = step_of_ten_seconds(1);
  const StepInterval interval = interval_of(p, {});
  EXPECT_NEAR(std::log(interval.high / p.step), 1.2816 * relative_deviation(p, {}), 1e-12);
  EXPECT_NEAR(interval.low.si() * interval.high.si(), 100, 1e-9);
}

}  // namespace
}  // namespace tbdsim
