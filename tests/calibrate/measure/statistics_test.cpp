#include "calibrate/measure/statistics/statistics.h"

#include <gtest/gtest.h>

namespace tbdsim::measure {
namespace {
using Samples = std::vector<double>;

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median(Samples{3, 1, 2}), 2);
  EXPECT_EQ(median(Samples{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(Samples{7}), 7);
}

TEST(Statistics, SpreadIgnoresOneOutlier) {
  // Median 10; deviations 1, 0, 0, 1, 90: their median is 1, so the spread is 1.4826 / 10.
  const Summary s = summarize(Samples{9, 10, 10, 11, 100});
  EXPECT_EQ(s.median, 10);
  EXPECT_NEAR(s.spread, 0.14826, 1e-12);
  EXPECT_EQ(s.samples, 5);
}

TEST(Statistics, SpreadOfEqualSamplesIsZero) { EXPECT_EQ(summarize(Samples{5, 5, 5}).spread, 0); }

TEST(StoppingRule, TakesAFirstBurstAndStopsWhenQuiet) {
  const StoppingRule rule;
  EXPECT_EQ(more_samples(rule, {}, 0, 1e-4), 15);
  EXPECT_EQ(more_samples(rule, Samples(15, 1e-4), 0.0015, 1e-4), 0);
}

Samples noisy(std::size_t count) {  // alternates 1 and 1.2: median 1 or 1.2, MAD about 0.1 of it
  Samples samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(i % 2 == 0 ? 1.0 : 1.2);
  return samples;
}

TEST(StoppingRule, GoesOnWhileNoisyUpToItsMost) {
  const StoppingRule rule;
  // An odd count has the majority value as median and MAD 0; even counts show the noise.
  EXPECT_EQ(more_samples(rule, noisy(30), 0, 1e-4), 16);
  EXPECT_EQ(more_samples(rule, noisy(46), 0, 1e-4), 16);
  EXPECT_EQ(more_samples(rule, noisy(62), 0, 1e-4), 1);  // 63 at most
  EXPECT_EQ(more_samples(rule, noisy(63), 0, 1e-4), 0);
}

TEST(StoppingRule, LongCallsGetFewSamples) {
  const StoppingRule rule;                        // 2 s
  EXPECT_EQ(more_samples(rule, {}, 0, 0.25), 8);  // as many as fit
  EXPECT_EQ(more_samples(rule, {}, 0, 10), 5);    // never fewer than 5
  EXPECT_EQ(more_samples(rule, Samples{1, 2, 3, 4, 9}, 50, 10), 0);
}

TEST(StoppingRule, AnEnormousBudgetDoesNotOverflow) {
  EXPECT_EQ(more_samples(StoppingRule{}, {}, 0, 1e-300), 15);
  EXPECT_EQ(more_samples(StoppingRule{}, {}, 0, 0), 15);
}

}  // namespace
}  // namespace tbdsim::measure
