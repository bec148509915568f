#include "graphs/dataset.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "hwspecs/base/catalog.h"

namespace tbdsim {
namespace {
using Bounds = std::vector<std::int64_t>;

// Lengths 1 to 10 have 0.05 each, 11 to 20 have 0.025 each, 21 to 40 have 0.0125 each.
const LengthHistogram kLengths = {{10, 0.5}, {20, 0.25}, {40, 0.25}};

void expect_bucket(const LengthBucket& bucket, std::int64_t length, double share, double mean) {
  EXPECT_EQ(bucket.length, length);
  EXPECT_DOUBLE_EQ(bucket.share, share);
  EXPECT_DOUBLE_EQ(bucket.mean_length, mean);
}

// The bins themselves: means of 1..10, 11..20 and 21..40 are 5.5, 15.5 and 30.5.
TEST(BucketsOf, BoundsAtTheBinsGiveTheBins) {
  const auto buckets = buckets_of(kLengths, Bounds{10, 20, 40});
  ASSERT_EQ(buckets.size(), 3u);
  expect_bucket(buckets[0], 10, 0.5, 5.5);
  expect_bucket(buckets[1], 20, 0.25, 15.5);
  expect_bucket(buckets[2], 40, 0.25, 30.5);
}

// Up to 15: 0.5 with mean 5.5 and five lengths, 11 to 15, of 0.025 each with mean 13: 0.625 with mean
// (0.5 x 5.5 + 0.125 x 13) / 0.625 = 7. Up to 40: 16 to 20 weigh 0.125 with mean 18, 21 to 40 weigh 0.25
// with mean 30.5: 0.375 with mean (0.125 x 18 + 0.25 x 30.5) / 0.375 = 26 1/3.
TEST(BucketsOf, ABoundInsideABinDividesIt) {
  const auto buckets = buckets_of(kLengths, Bounds{15, 40});
  ASSERT_EQ(buckets.size(), 2u);
  expect_bucket(buckets[0], 15, 0.625, 7);
  expect_bucket(buckets[1], 40, 0.375, 79.0 / 3);
}

// Up to 30 there are 0.5 + 0.25 + 0.125; the other eighth is dropped.
TEST(BucketsOf, SamplesBeyondTheLastBoundAreLeftOut) {
  const auto buckets = buckets_of(kLengths, Bounds{20, 30});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_DOUBLE_EQ(buckets[0].share, 0.75 / 0.875);
  EXPECT_DOUBLE_EQ(buckets[1].share, 0.125 / 0.875);
  EXPECT_DOUBLE_EQ(buckets[1].mean_length, 25.5);  // of 21 to 30
}

// Half the room: the bucket of 20 holds lengths up to 10, that of 40 up to 20; the last quarter is dropped.
TEST(BucketsOf, WithLessRoomSamplesMoveToLongerBuckets) {
  const auto buckets = buckets_of(kLengths, Bounds{20, 40}, 0.5);
  ASSERT_EQ(buckets.size(), 2u);
  expect_bucket(buckets[0], 20, 0.5 / 0.75, 5.5);
  expect_bucket(buckets[1], 40, 0.25 / 0.75, 15.5);
}

TEST(BucketsOf, BucketsWithoutSamplesAreOmitted) {
  EXPECT_EQ(buckets_of(kLengths, Bounds{40, 50, 60}).size(), 1u);
  EXPECT_EQ(buckets_of({{5, 0}, {10, 1}}, Bounds{5, 10}).size(), 1u);
  EXPECT_TRUE(buckets_of({{5, 0}, {10, 1}}, Bounds{5}).empty());
  EXPECT_TRUE(buckets_of({}, Bounds{5, 10}).empty());
  EXPECT_TRUE(buckets_of(kLengths, Bounds{}).empty());
}

TEST(BucketsOf, ASingleLength) {
  const auto buckets = buckets_of({{383, 0}, {384, 1}}, Bounds{512});
  ASSERT_EQ(buckets.size(), 1u);
  expect_bucket(buckets[0], 512, 1, 384);
}

// 0.5 x 5.5 + 0.25 x 15.5 + 0.25 x 30.5.
TEST(MeanLength, WeighsTheBins) {
  EXPECT_DOUBLE_EQ(mean_length(kLengths), 14.25);
  EXPECT_EQ(mean_length({}), 0);
}

TEST(Dataset, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  EXPECT_GE(catalog.names(Kind::dataset).size(), 10u);
  for (const std::string& name : catalog.names(Kind::dataset)) {
    SCOPED_TRACE(name);
    const Dataset dataset = read_dataset(catalog.find(Kind::dataset, name));
    EXPECT_EQ(dataset.name, name);
    EXPECT_FALSE(dataset.title.empty() || dataset.sample.empty());
    EXPECT_EQ(dataset.lengths.empty(), dataset.length_unit.empty());
    const bool played = name == "atari_pong" || name == "minigo_positions";  // samples made by playing
    EXPECT_EQ(dataset.samples.has_value(), !played);
  }
}

Dataset catalogue_dataset(const char* name) {
  return read_dataset(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::dataset, name));
}

// 100.6 hours over 28539 utterances are 1269 frames of 10 ms for each.
TEST(Dataset, EstimatedLengthsHaveThePublishedMeans) {
  EXPECT_NEAR(mean_length(catalogue_dataset("librispeech_100h").lengths), 100.6 * 3600 * 100 / 28539, 10);
  EXPECT_NEAR(mean_length(catalogue_dataset("wmt16_gnmt").lengths), 24, 0.1);
}

// Training on at most 100 tokens loses almost nothing of IWSLT.
TEST(Dataset, FewSentencesAreLong) {
  double within = 0;
  for (const LengthBin& bin : catalogue_dataset("iwslt15").lengths)
    within += bin.up_to <= 100 ? bin.share : 0;
  EXPECT_GT(within, 0.99);
}

// English beside Vietnamese.
TEST(Dataset, SourcesOfPairsAreShorter) {
  EXPECT_DOUBLE_EQ(catalogue_dataset("iwslt15").source_share.value(), 0.82);
  EXPECT_FALSE(catalogue_dataset("imagenet").source_share);
}

// Two of three photographs are wider than high, and some of one bin on either side.
TEST(Dataset, RatiosOfImages) {
  double wide = 0;
  for (const RatioBin& bin : catalogue_dataset("voc2007_flipped").image_ratios)
    wide += bin.from >= 1 ? bin.share : 0;
  EXPECT_NEAR(wide, 0.68, 1e-9);
  EXPECT_TRUE(catalogue_dataset("imagenet").image_ratios.empty());
}

// More than 1000 images a second with 4 threads; frames of a game are not decoded.
TEST(Dataset, DecodeTimeWhereItIsKnown) {
  EXPECT_DOUBLE_EQ(catalogue_dataset("imagenet").decode_time.value().si(), 0.004);
  EXPECT_DOUBLE_EQ(catalogue_dataset("iwslt15").decode_time.value().si(), 7.6e-6);
  EXPECT_FALSE(catalogue_dataset("atari_pong").decode_time);
}

// Two bins, 1 to 10 with 0.4 and 11 to 20 with 0.6: half of the second is within 15.
TEST(ShareWithin, CountsBinsInPart) {
  const LengthHistogram lengths{{10, 0.4}, {20, 0.6}};
  EXPECT_DOUBLE_EQ(share_within(lengths, 15), 0.7);
  EXPECT_DOUBLE_EQ(share_within(lengths, 5), 0.2);
  EXPECT_DOUBLE_EQ(share_within(lengths, 100), 1);
  EXPECT_DOUBLE_EQ(share_within({}, 5), 1);
}

}  // namespace
}  // namespace tbdsim
