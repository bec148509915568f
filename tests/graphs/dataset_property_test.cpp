// Properties of the buckets of any histogram and any bounds: those of the catalogue, and made ones.
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "graphs/dataset.h"
#include "hwspecs/base/catalog.h"

namespace tbdsim {
namespace {
using Bounds = std::vector<std::int64_t>;

constexpr double kTolerance = 1e-9;

std::vector<LengthHistogram> histograms() {
  std::vector<LengthHistogram> all;
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& name : catalog.names(Kind::dataset)) {
    all.push_back(read_dataset(catalog.find(Kind::dataset, name)).lengths);
  }
  std::mt19937 random(20180930);
  for (int i = 0; i < 50; ++i) {
    LengthHistogram lengths;
    double sum = 0;
    for (std::int64_t up_to = 0; lengths.size() < 1 + random() % 12;) {
      up_to += 1 + static_cast<std::int64_t>(random() % 40);
      lengths.push_back({up_to, static_cast<double>(1 + random() % 100)});
      sum += lengths.back().share;
    }
    for (LengthBin& bin : lengths) bin.share /= sum;
    all.push_back(lengths);
  }
  std::erase_if(all, [](const LengthHistogram& lengths) { return lengths.empty(); });
  return all;
}

// The histogram's longest length last, so that no sample is left out.
Bounds bounds_for(const LengthHistogram& lengths, std::int64_t step) {
  Bounds bounds;
  for (std::int64_t bound = step; bound < lengths.back().up_to; bound += step) bounds.push_back(bound);
  bounds.push_back(lengths.back().up_to);
  return bounds;
}

TEST(Buckets, SharesSumToOneAndMeansLieInTheirBuckets) {
  for (const LengthHistogram& lengths : histograms()) {
    for (const std::int64_t step : {1, 3, 10, 64, 1000}) {
      double sum = 0;
      double before = 0;
      for (const LengthBucket& bucket : buckets_of(lengths, bounds_for(lengths, step))) {
        EXPECT_GT(bucket.share, 0);
        EXPECT_GE(bucket.mean_length, before + 1 - kTolerance);
        EXPECT_LE(bucket.mean_length, static_cast<double>(bucket.length) + kTolerance);
        before = static_cast<double>(bucket.length);
        sum += bucket.share;
      }
      EXPECT_NEAR(sum, 1, kTolerance);
    }
  }
}

// Padding changes, the samples do not: their mean length is the same however they are divided.
TEST(Buckets, TheMeanOverBucketsIsTheMeanOfAll) {
  for (const LengthHistogram& lengths : histograms()) {
    for (const std::int64_t step : {1, 7, 50}) {
      double mean = 0;
      for (const LengthBucket& bucket : buckets_of(lengths, bounds_for(lengths, step))) {
        mean += bucket.share * bucket.mean_length;
      }
      EXPECT_NEAR(mean / mean_length(lengths), 1, kTolerance);
    }
  }
}

// Finer bounds never pad more.
TEST(Buckets, FinerBoundsPadLess) {
  const auto padded = [](const LengthHistogram& lengths, std::int64_t step) {
    double mean = 0;
    for (const LengthBucket& bucket : buckets_of(lengths, bounds_for(lengths, step))) {
      mean += bucket.share * static_cast<double>(bucket.length);
    }
    return mean;
  };
  for (const LengthHistogram& lengths : histograms()) {
    EXPECT_LE(padded(lengths, 5), padded(lengths, 10) + kTolerance);
    EXPECT_LE(padded(lengths, 10), padded(lengths, 100) + kTolerance);
    EXPECT_NEAR(padded(lengths, 1) / mean_length(lengths), 1, kTolerance);  // no padding at all
  }
}

}  // namespace
}  // namespace tbdsim
