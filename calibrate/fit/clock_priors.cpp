#include "calibrate/fit/clock_priors.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/families/families.h"
#include "hwspecs/base/statistics.h"

namespace tbdsim {
namespace {

std::string anchor_key(std::string_view set, std::string_view gpu, std::string_view block) {
  return std::string(set) + "|" + std::string(gpu) + "|" + precision_of(block);
}

std::string clock_key(std::string_view gpu, std::string_view precision) {
  return std::string(gpu) + "|" + std::string(precision);
}

std::map<std::string, double> anchors_of(const Samples<GemmFamily>& gemms) {
  constexpr std::size_t kLargest = 60;
  constexpr double kRank = 0.9;
  constexpr double kLeastAnchorTime = 2e-4;  // s; shorter ones are launches more than products
  std::map<std::string, std::vector<std::pair<double, double>>> found;  // work, achieved share
  for (const Sample<GemmFamily>& s : gemms) {
    if (s.time_s < kLeastAnchorTime) continue;
    const double flops = GemmFamily::flops(s.call);
    found[anchor_key(s.set, s.gpu, s.block)].push_back({flops, flops / (s.time_s * s.hardware.peak)});
  }
  std::map<std::string, double> anchors;
  for (auto& [key, all] : found) {
    std::sort(all.rbegin(), all.rend());
    std::vector<double> shares;
    const std::size_t largest = std::min(kLargest, (all.size() + 2) / 3);
    for (std::size_t i = 0; i < largest; ++i) shares.push_back(all[i].second);
    std::sort(shares.begin(), shares.end());
    anchors[key] =
        shares[static_cast<std::size_t>(std::ceil(kRank * static_cast<double>(shares.size()))) - 1];
  }
  return anchors;
}

}  // namespace

ClockPriors clock_priors(std::span<const Record> records, const GpuSpecs& gpus) {
  ClockPriors clocks{anchors_of(samples_of<GemmFamily>(records, gpus)), {}};
  for (const auto& [name, gpu] : gpus) {
    for (std::size_t m = 0; m < kMathTypeCount; ++m) {
      const auto math = static_cast<MathType>(m);
      if (!gpu.math[m] && !gpu.computes_in[m]) continue;
      clocks.expected[clock_key(name, kMathTypeNames[m])] = expected_clock(gpu, math);
    }
  }
  return clocks;
}

template <class Family>
std::optional<double> anchor_of(const Sample<Family>& s, const ClockPriors& clocks) {
  const auto found = clocks.anchors.find(anchor_key(s.set, s.gpu, s.block));
  return found == clocks.anchors.end() ? std::nullopt : std::optional(found->second);
}

template <class Family>
Prior clock_of(const Sample<Family>& s, const ClockPriors& clocks, bool anchored) {
  if (const auto anchor = anchor_of(s, clocks); anchored && anchor) return {*anchor, kAnchoredClockSd};
  const auto expected = clocks.expected.find(clock_key(s.gpu, precision_of(s.block)));
  return expected == clocks.expected.end() ? Prior{} : expected->second;
}

template <class Family>
ClockRatio clock_ratio(const Samples<Family>& samples, const FamilyFit& fit, const ClockPriors& clocks,
                       bool anchored) {
  std::map<std::string, double> ratios;
  for (const Sample<Family>& s : samples) {
    ratios[s.gpu] = std::log(fit.gpus.at(s.gpu).sustained.clock / clock_of(s, clocks, anchored).mean);
  }
  std::vector<double> values;
  for (const auto& [gpu, ratio] : ratios) values.push_back(ratio);
  ClockRatio result{std::exp(median(values)), 0};
  for (const double value : values) result.sd += std::pow(value - std::log(result.median), 2);
  result.sd = std::sqrt(result.sd / static_cast<double>(values.size()));
  return result;
}

#define TBDSIM_INSTANTIATE(Family)                                                             \
  template std::optional<double> anchor_of<Family>(const Sample<Family>&, const ClockPriors&); \
  template Prior clock_of<Family>(const Sample<Family>&, const ClockPriors&, bool);            \
  template ClockRatio clock_ratio<Family>(const Samples<Family>&, const FamilyFit&, const ClockPriors&, bool);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
