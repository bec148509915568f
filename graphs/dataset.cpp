#include "graphs/dataset.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSourcedKeys[] = {"samples",      "lengths",     "source_share",
                                             "image_ratios", "decode_time", "sample_bytes"};
constexpr double kShareTolerance = 1e-6;
constexpr std::int64_t kLongest = 1'000'000'000;
constexpr double kLeastSourceShare = 0.01;
constexpr double kLargestRatio = 100;  // of an image's sides
constexpr double kRounding = 1e-9;     // 0.7 x 30 is 21

void require_whole(double sum, const SpecNode& node) {
  if (std::abs(sum - 1) > kShareTolerance)
    node.fail(fmt::format("the shares sum to {:.7g}; expected 1", sum));
}

LengthHistogram read_lengths(const SpecNode& node) {
  LengthHistogram lengths;
  double sum = 0;
  for (const SpecNode& bin : node.list()) {
    const std::vector<SpecNode> items = bin.list();
    if (items.size() != 2) bin.fail("is no pair; expected [length, share]");
    const std::int64_t up_to = items[0].count(1, kLongest);
    if (!lengths.empty() && up_to <= lengths.back().up_to) {
      items[0].fail(fmt::format("{} after {}; expected ascending lengths", up_to, lengths.back().up_to));
    }
    lengths.push_back({.up_to = up_to, .share = items[1].number(0, 1)});
    sum += lengths.back().share;
  }
  require_whole(sum, node);
  return lengths;
}

std::vector<RatioBin> read_ratios(const SpecNode& node) {
  std::vector<RatioBin> ratios;
  double sum = 0;
  for (const SpecNode& bin : node.list()) {
    const std::vector<SpecNode> items = bin.list();
    if (items.size() != 3) bin.fail("has no three numbers; expected [from, to, share]");
    const double from = items[0].number(1 / kLargestRatio, kLargestRatio);
    ratios.push_back({from, items[1].number(from, kLargestRatio), items[2].number(0, 1)});
    sum += ratios.back().share;
  }
  require_whole(sum, node);
  return ratios;
}

}  // namespace

Dataset read_dataset(const std::filesystem::path& file, const SpecChanges& changes) {
  const SpecTree tree = read_spec_file(file, changes_of(changes, "dataset", file.stem().string()));
  Dataset dataset;
  dataset.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    dataset.title = m.at("title").text();
    dataset.sample = m.at("sample").text();
    if (const auto samples = m.find("samples")) dataset.samples = samples->count(1);
    if (const auto lengths = m.find("lengths")) {
      dataset.lengths = read_lengths(*lengths);
      dataset.length_unit = m.at("length_unit").text();
    }
    if (const auto share = m.find("source_share")) dataset.source_share = share->number(kLeastSourceShare, 1);
    if (const auto ratios = m.find("image_ratios")) dataset.image_ratios = read_ratios(*ratios);
    if (const auto decode = m.find("decode_time")) dataset.decode_time = decode->quantity<Seconds>();
    if (const auto bytes = m.find("sample_bytes")) dataset.sample_bytes = bytes->quantity<Bytes>();
    dataset.sources = read_sources(m, kSourcedKeys);
  });
  return dataset;
}

std::vector<LengthBucket> buckets_of(const LengthHistogram& lengths, std::span<const std::int64_t> bounds,
                                     double room) {
  assert(std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) == bounds.end());
  std::vector<LengthBucket> buckets;
  double all = 0;
  std::int64_t after = 0;  // the bucket holds the lengths after + 1 to `held`
  for (const std::int64_t bound : bounds) {
    const auto held = std::llround(std::floor(static_cast<double>(bound) * room + kRounding));
    double weight = 0;
    double weighted_length = 0;
    std::int64_t before = 0;  // the bin holds the lengths before + 1 to up_to
    for (const LengthBin& bin : lengths) {
      const std::int64_t first = std::max(before, after) + 1;
      const std::int64_t last = std::min<std::int64_t>(bin.up_to, held);
      if (first <= last) {
        const double part =
            bin.share * static_cast<double>(last - first + 1) / static_cast<double>(bin.up_to - before);
        weight += part;
        weighted_length += part * static_cast<double>(first + last) / 2;
      }
      before = bin.up_to;
    }
    if (weight > 0)
      buckets.push_back({.length = bound, .share = weight, .mean_length = weighted_length / weight});
    all += weight;
    after = held;
  }
  for (LengthBucket& bucket : buckets) bucket.share /= all;
  return buckets;
}

double share_within(const LengthHistogram& lengths, std::int64_t bound) {
  if (lengths.empty()) return 1;
  double share = 0;
  std::int64_t before = 0;
  for (const LengthBin& bin : lengths) {
    const std::int64_t within = std::min(bin.up_to, bound) - before;
    if (within > 0)
      share += bin.share * static_cast<double>(within) / static_cast<double>(bin.up_to - before);
    before = bin.up_to;
  }
  return share;
}

double mean_length(const LengthHistogram& lengths) {
  if (lengths.empty()) return 0;
  const std::int64_t longest[] = {lengths.back().up_to};
  const auto buckets = buckets_of(lengths, longest);
  return buckets.empty() ? 0 : buckets.front().mean_length;
}

}  // namespace tbdsim
