// A data set: samples in an epoch and their lengths. One YAML file for each in graphs/datasets/.
//
// Samples of unequal length (sentences, utterances) are trained in batches of similar length: a framework has
// a list of bounds, its buckets, and pads each sample to the smallest bound that holds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"
#include "hwspecs/base/spec_change.h"

namespace tbdsim {

// Samples longer than the bin before (0 for the first) and at most this long.
struct LengthBin {
  std::int64_t up_to = 0;
  double share = 0;  // of all samples, 0 to 1
};

// Bins ascend; their shares sum to 1 within 1e-6.
using LengthHistogram = std::vector<LengthBin>;

// Images of from <= width / height <= to, spread evenly between.
struct RatioBin {
  double from = 1;
  double to = 1;
  double share = 0;  // of all images, 0 to 1
};

struct Dataset {
  std::string name;                     // the file's stem
  std::string title;                    // "IWSLT 2015 English-Vietnamese"
  std::string sample;                   // the name of one, singular: "sentence pair"
  std::optional<std::int64_t> samples;  // in an epoch; empty where there is none (reinforcement learning)
  std::string length_unit;             // what lengths count: "token", "frame of 10 ms"; empty without lengths
  LengthHistogram lengths;             // empty where all samples are alike
  std::optional<double> source_share;  // of pairs: a source's mean length over its target's, 0 to 1
  std::vector<RatioBin> image_ratios;  // in any order, the shares sum to 1; empty: unknown, or no images
  std::optional<Seconds>
      decode_time;  // time in which one thread reads, decodes and augments a sample; empty: unknown
  std::optional<Bytes> sample_bytes;  // the mean of a sample in storage; empty: unknown
  Sources sources;
};

// Throws UsageError or SpecError (lengths that do not ascend, shares that do not sum to 1).
[[nodiscard]] Dataset read_dataset(const std::filesystem::path& file, const SpecChanges& changes = {});

// A bucket: the samples that are padded to one length.
struct LengthBucket {
  std::int64_t length = 0;  // padded
  double share = 0;         // of all samples that are trained on, 0 to 1
  double mean_length = 0;   // before padding
};

// The buckets that bounds (positive, ascending) make of a histogram, in their order. Within bin i, lengths
// are spread evenly: each whole number l of u(i-1) + 1 to u(i) has the share p(l) = share(i) / (u(i) -
// u(i-1)). The bucket of bound b, where a is the bound before, has
//
//   weight w(b) = sum of p(l) over a < l <= b
//   mean_length = sum of l * p(l) over a < l <= b, / w(b)
//   share       = w(b) / W
//
// with W the sum of all w: training drops samples beyond the last bound. Buckets without samples are omitted;
// there is none where no sample is within the last bound.
//
// `room` (0 to 1): a bucket of bound b holds lengths up to room * b only, for sources that are padded to a
// share of the bound.
[[nodiscard]] std::vector<LengthBucket> buckets_of(const LengthHistogram& lengths,
                                                   std::span<const std::int64_t> bounds, double room = 1);

// The share of samples that are trained on, those within the last bound, 0 to 1. 1 for an empty histogram.
[[nodiscard]] double share_within(const LengthHistogram& lengths, std::int64_t bound);

// The mean length of all samples; 0 for an empty histogram.
[[nodiscard]] double mean_length(const LengthHistogram& lengths);

}  // namespace tbdsim
